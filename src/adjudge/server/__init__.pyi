from adjudge.config.server import ServerSettings as ServerSettings
from adjudge.server.app import make_app as make_app
