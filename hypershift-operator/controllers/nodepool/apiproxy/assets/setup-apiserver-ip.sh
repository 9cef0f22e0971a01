#!/usr/bin/env bash
# Gives the node its local address of the API server. Doing it twice does no harm.
set -eu
ip address replace {{ .Prefix }} dev lo
