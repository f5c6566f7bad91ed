"""The project file, adjudge.toml, and what it opens: shared by the command line, the server and the test plugin."""
