"""What every handler uses: queries, errors as v1 Status, listening, open sockets. Knows no resource."""
