# Released versions, which hack/releases.yaml names.

# Which release.
RELEASE ?=

.PHONY: release-programs
release-programs: ## Build the programs of RELEASE, such as 0.1.0, into the cache (releases/RELEASE/bin)
	@[ -n '$(RELEASE)' ] || { echo "RELEASE is missing: make release-programs RELEASE=0.1.0" >&2; exit 2; }
	@go run ./hack/releases programs '$(RELEASE)'

# What upgrades of the operator are tested from. Its programs are built once for each machine.
.PHONY: released-programs
released-programs: ## Build the programs of the last release, from which tests upgrade the operator
	go run ./hack/releases last $(BIN)/released

test-environment: released-programs

.PHONY: verify-releases
verify-releases: ## Check the table of releases against the changelog and the repository
	go run ./hack/releases verify

verify: verify-releases

.PHONY: names
names: ## Write the page of the names that users depend on
	go run ./hack/names -write

.PHONY: verify-names
verify-names: ## Check that no name that users depend on goes without a line in the changelog
	go run ./hack/names

verify: verify-names

.PHONY: verify-crds
verify-crds: ## Check that no CRD breaks what users of the last release have
	go run ./hack/crdcompat
	go run ./hack/crdcompat -stored

verify: verify-crds

.PHONY: verify-frozen
verify-frozen: ## Check that nothing changes that would replace machines of the last release's clusters
	go run ./hack/frozen

verify: verify-frozen
