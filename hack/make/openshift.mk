# The operators of an OpenShift release, built from a clone of openshift/hypershift that the user has.

# UPSTREAM is the folder of the clone. REF is a branch, tag or commit of it; empty for its HEAD.
UPSTREAM ?=
REF ?=

.PHONY: test-openshift
ifeq ($(UPSTREAM),)
test-openshift: ## Run the life of a cluster of OpenShift, as root: UPSTREAM=DIR [REF=release-4.20] names a clone of openshift/hypershift
	@echo "test-openshift: skipped; UPSTREAM=DIR names a clone of openshift/hypershift"
else
test-openshift: preflight environment
	UPSTREAM=$(abspath $(UPSTREAM)) REF=$(REF) go run ./hack/test openshift
endif
