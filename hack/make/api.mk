# Everything that follows from the types in api/.

CONTROLLER_GEN_VERSION := v0.21.0
CONTROLLER_GEN := $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION)
GENERATE := go run ./hack/generate -controller-gen $(CONTROLLER_GEN)

$(CONTROLLER_GEN):
	go install sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	mv $(BIN)/controller-gen $@

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Make deep copies, CRDs and the reference pages
	$(GENERATE)
	go run ./cmd/docs docs/reference/cli
	go run ./hack/names -write

.PHONY: verify-generate
verify-generate: $(CONTROLLER_GEN) ## Check that generated files are fresh
	$(GENERATE) -check

.PHONY: verify-api
verify-api: ## Check that no published field of the API is lost
	go run ./hack/generate -fields
