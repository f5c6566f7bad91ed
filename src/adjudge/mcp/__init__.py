"""Tools of the Model Context Protocol, checked on the server that has them and on the client that calls them."""
