// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// of returns the suite of a scenario, with its own MAAS user. If the scenario fails, what is left of its cluster is
// destroyed, so that the other scenarios have resources.
func (s *suite) of(t *testing.T, sc scenario, running *sync.RWMutex) *suite {
	t.Helper()
	own := s.withUser(t, sc, running)
	t.Cleanup(func() { own.removeAfterFailure(t, "maas", own.cluster) })
	return own
}

// withUser returns the suite of a scenario, with its own MAAS user.
func (s *suite) withUser(t *testing.T, sc scenario, running *sync.RWMutex) *suite {
	t.Helper()
	out := &lines{out: s.Out, prefix: "[" + sc.name + "] "}
	t.Cleanup(out.end)
	own := &suite{
		Walker: journey.NewWalker(s.Bin, s.Dir, out), c: s.c,
		cluster: sc.name, user: sc.name, keyFile: s.Path("maas", sc.name+".key"), running: running,
	}
	body, err := json.Marshal(map[string]bool{"admin": sc.admin})
	own.must(t, err)
	var user struct{ Key string }
	own.must(t, json.Unmarshal(own.admin(t.Context(), t, http.MethodPut, "/users/"+own.user, body), &user))
	own.must(t, os.WriteFile(own.keyFile, []byte(user.Key+"\n"), 0o600))
	own.maas, err = maas.NewClient(maas.Config{Endpoint: env.MAASURL, APIKey: user.Key})
	own.must(t, err)
	return own
}

// removeAfterFailure destroys a hosted cluster that remains after a failed test.
func (s *suite) removeAfterFailure(t *testing.T, platform, cluster string) {
	t.Helper()
	if !t.Failed() || os.Getenv("HYPERSHIFT_E2E_KEEP") != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), long)
	defer cancel()
	err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, &hyperv1.HostedCluster{})
	if err == nil {
		err = s.Type(ctx, "hypershift", "destroy", "cluster", platform, "--name", cluster, "--namespace", journey.Namespace)
	}
	if client.IgnoreNotFound(err) != nil {
		s.Say("Removing what the failed scenario left: %v", err)
	}
}

// alone runs a function while no other scenario runs.
func (s *suite) alone(f func()) {
	s.running.RUnlock()
	began := time.Now()
	s.running.Lock()
	s.waitedAlone += time.Since(began)
	defer func() {
		s.running.Unlock()
		s.running.RLock()
	}()
	f()
}

// createCluster creates the scenario's hosted cluster with a pool of the same name, and waits until the nodes are
// Ready. The pools use common machines unless flags select others.
func (s *suite) createCluster(t *testing.T, replicas int, flags ...string) {
	t.Helper()
	flags = append([]string{"--maas-api-key-file", s.keyFile, "--maas-resource-pool", workers}, flags...)
	s.must(t, s.CreateCluster(t.Context(), s.cluster, replicas, flags...))
	s.must(t, s.FollowCluster(t.Context(), s.cluster, replicas))
}

// destroy destroys the scenario's hosted cluster and checks that nothing of it is left.
func (s *suite) destroy(t *testing.T) {
	t.Run("destroy", func(t *testing.T) {
		s.noTurns(t, nil)
		s.must(t, s.DestroyCluster(t.Context(), s.cluster))
		s.nothingLeft(t)
	})
}

func (s *suite) nothingLeft(t *testing.T) {
	t.Helper()
	s.reach(t, "machines released", soon, func(ctx context.Context) (bool, string, error) {
		held, err := s.allocated(ctx)
		return len(held) == 0, fmt.Sprintf("%d machines are allocated", len(held)), err
	})
	g := NewWithT(t)
	hosted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.HostedNamespace(s.cluster)}}
	g.Expect(apierrors.IsNotFound(s.c.Get(t.Context(), client.ObjectKeyFromObject(hosted), hosted))).To(BeTrue())
	for _, list := range []client.ObjectList{
		&hyperv1.HostedClusterList{}, &hyperv1.NodePoolList{}, &hyperv1.HostedControlPlaneList{}, &corev1.SecretList{},
	} {
		g.Expect(s.c.List(t.Context(), list, client.InNamespace(journey.Namespace))).To(Succeed())
		g.Expect(s.owns(list)).To(BeEmpty(), "%T", list)
	}
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		out, err := s.Read(t.Context(), "kubectl", "get", kind, "-o", "name")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring(hosted.Name), "%s of the cluster are left", kind)
	}
}

// owns lists the names of the objects that belong to the scenario's cluster.
func (s *suite) owns(list client.ObjectList) []string {
	items, err := meta.ExtractList(list)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, item := range items {
		pool, isPool := item.(*hyperv1.NodePool)
		object, err := meta.Accessor(item)
		if err == nil && (strings.Contains(object.GetName(), s.cluster) || isPool && pool.Spec.ClusterName == s.cluster) {
			found = append(found, object.GetName())
		}
	}
	return found
}
