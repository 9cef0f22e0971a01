# The older managers of Cluster API, which release payloads bring: each is built from its public module into bin/cluster-api-MINOR/.

CLUSTER_API_MINORS ?= 1.9 1.10

# The newest patch of each minor that is in the module proxy and in the checksum database.
cluster_api/1.9 := v1.9.6
cluster_api/1.10 := v1.10.8

CLUSTER_API_MANAGERS := $(CLUSTER_API_MINORS:%=$(BIN)/cluster-api-%/cluster-api)
empty :=
space := $(empty) $(empty)

.PHONY: test-cluster-api
test-cluster-api: kube-binaries $(CLUSTER_API_MANAGERS) $(BIN)/images/cluster-api ## Test our CRDs with Cluster API's own managers, older and newer, one after the other
	CLUSTER_API_MANAGERS=$(subst $(space),:,$(CLUSTER_API_MANAGERS) $(BIN)/images/cluster-api) go test -count=1 -timeout 30m -v ./test/clusterapi

# The version stands in this file, so the module is made anew when it changes. Go writes its checksums as it finds them.
$(CLUSTER_API_MANAGERS): $(BIN)/cluster-api-%/cluster-api: hack/make/clusterapi.mk
	rm -rf $(@D) && mkdir -p $(@D)
	printf 'module clusterapi\n\ngo 1.26\n\nrequire sigs.k8s.io/cluster-api %s\n' $(cluster_api/$*) > $(@D)/go.mod
	cd $(@D) && $(STATIC_BUILD) -mod=mod -o $@ sigs.k8s.io/cluster-api
