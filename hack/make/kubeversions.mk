# The older kube-apiservers that a management cluster may run. Each is built into bin/kube-MINOR/ from the public modules
# and stands there beside the etcd and kubectl of bin/kube, so that KUBEBUILDER_ASSETS=bin/kube-1.31 tests against 1.31.

KUBE_MINORS ?= 1.31 1.32 1.33 1.34 1.35

# The newest patch of each minor whose libraries are all in the module proxy and in the checksum database.
kube_release/1.31 := v1.31.0
kube_release/1.32 := v1.32.13
kube_release/1.33 := v1.33.13
kube_release/1.34 := v1.34.4
kube_release/1.35 := v1.35.4

.PHONY: test-kube-versions
test-kube-versions: $(KUBE_MINORS:%=$(BIN)/kube-%/kube-apiserver) ## Test CRDs and rules with older kube-apiservers
	@failed=; for minor in $(KUBE_MINORS); do \
		$(BIN)/kube-$$minor/kube-apiserver --version; \
		KUBEBUILDER_ASSETS=$(BIN)/kube-$$minor go run ./hack/test management || failed="$$failed $$minor"; \
	done; \
	[ -z "$$failed" ] || { echo "Failed with kube-apiserver$$failed" >&2; exit 1; }

# The versions stand in this file, so the module is made anew when it changes.
$(KUBE_MINORS:%=$(BIN)/kube-%/go.mod): $(BIN)/kube-%/go.mod: hack/kubemodule/main.go hack/make/kubeversions.mk
	mkdir -p $(@D)
	rm -f $(@D)/go.sum
	go run ./hack/kubemodule '$(kube_release/$*)' > $@

# Go writes the module's checksums as it finds them; the checksum database vouches for each.
$(KUBE_MINORS:%=$(BIN)/kube-%/kube-apiserver): $(BIN)/kube-%/kube-apiserver: $(BIN)/kube-%/go.mod | $(BIN)/kube/etcd $(BIN)/kube/kubectl
	cd $(@D) && CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags '$(call kube_ldflags,$(kube_release/$*))' -o $@ k8s.io/kubernetes/cmd/kube-apiserver
	ln -sf ../kube/etcd ../kube/kubectl $(@D)/
