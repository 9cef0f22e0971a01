# Released versions, which hack/releases.yaml names.

# Which release.
RELEASE ?=

.PHONY: release-programs
release-programs: ## Build the programs of RELEASE, such as 0.1.0, into the cache (releases/RELEASE/bin)
	@[ -n '$(RELEASE)' ] || { echo "RELEASE is missing: make release-programs RELEASE=0.1.0" >&2; exit 2; }
	@go run ./hack/releases programs '$(RELEASE)'

.PHONY: verify-releases
verify-releases: ## Check the table of releases against the changelog and the repository
	go run ./hack/releases verify

verify: verify-releases
