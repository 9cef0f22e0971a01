# Which packages: those without an API server are quick.
ALONE ?= ./support/... ./cmd/... ./test/maas-simulator/... ./control-plane-operator/run $(addprefix ./ignition-server/,endpoint payload nodeconfig) \
	$(addprefix ./hypershift-operator/platform/,agent aws kubevirt maas registry) \
	$(addprefix ./cluster-api-provider-maas/internal/,guest identity inventory lifecycle lxd placement staticip)

.PHONY: test-alone
test-alone: kube-binaries ## Run each subtest by itself, and see that none needs an earlier one
	go run ./hack/alone $(ALONE)
