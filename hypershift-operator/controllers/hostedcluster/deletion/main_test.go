// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

const operatorImage = "registry.example/hypershift:1"

// desk is a Deleter with an in-memory API server.
type desk struct {
	Deleter
	*clustertest.Server
}

func newDesk(objects ...client.Object) *desk {
	server := clustertest.NewServer(objects...)
	return &desk{Server: server, Deleter: Deleter{Client: server.Refusing, LiveReader: server.Refusing, OperatorImage: operatorImage}}
}

func TestMain(m *testing.M) { fixture.Main(m) }
