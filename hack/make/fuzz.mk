# Parsers of what others send: MAAS, tenants, machines, registries. Their seeds, and what they crashed on once, run with every test.

# How long each target runs, and which (as in FUZZ=nodeinput.FuzzRead); all by default.
FUZZTIME ?= 10m
FUZZ ?=

.PHONY: fuzz
fuzz: ## Feed parsers with what nobody thought of, FUZZTIME (10m) each; FUZZ=package.Target for some
	go run ./hack/fuzz -time $(FUZZTIME) -only '$(FUZZ)' . api
