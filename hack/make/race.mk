# What starts goroutines of its own, and what they share: managers, the MAAS client and its caches, the simulator.
RACE ?= ./support/maas/... ./support/testenv/... ./test/maas-simulator/... ./cluster-api-provider-maas/... ./ignition-server/... \
	./hypershift-operator/... ./control-plane-operator/...

# The race detector needs cgo, which the other targets do without, so everything below these packages is compiled once more.
.PHONY: test-race
test-race: kube-binaries ## Run the tests of what works concurrently under the race detector
	CGO_ENABLED=1 go test -race -timeout 60m $(RACE)
