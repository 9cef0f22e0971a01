# All packages, without the environment's journey. One of them: make test-race RACE=./support/maas
RACE ?= $$(go list ./... | grep -v /test/e2e)

# The race detector needs cgo and gcc, which the other targets do without, so everything is compiled once more. `make test` does it with
# what is compiled in a minute.
.PHONY: test-race
test-race: kube-binaries ## Run the tests of every package under the race detector
	CGO_ENABLED=1 go test -race -timeout 60m -p 2 $(RACE)
