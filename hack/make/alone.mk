# Which packages: those without an API server are quick.
ALONE ?= ./support/... ./cmd/... ./test/maas-simulator/...

.PHONY: test-alone
test-alone: kube-binaries ## Run each subtest by itself, and see that none needs an earlier one
	go run ./hack/alone $(ALONE)
