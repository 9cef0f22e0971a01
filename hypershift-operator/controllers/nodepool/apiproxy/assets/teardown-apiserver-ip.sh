#!/usr/bin/env bash
# Takes the node's local address of the API server away.
set -eu
ip address delete {{ .Prefix }} dev lo || true
