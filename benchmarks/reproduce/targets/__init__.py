"""One module a table or figure, each with a ``TARGET``; modules named ``why_*`` show causes."""
