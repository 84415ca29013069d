"""The fake providers' own tests: they refuse the requests that the providers refuse, and accept similar valid ones."""
