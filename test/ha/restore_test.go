// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/journey"
)

// restore restores a running cluster with three members to a backup. Only the control plane is affected: machines,
// Nodes and pods continue to run.
func (s *suite) restore(t *testing.T) {
	g := NewWithT(t)
	s.must(t, s.RunWorkload(t.Context(), cluster))
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	m, err := s.MAAS()
	s.must(t, err)
	before, volumes, pods := s.running(t, m, guest), s.volumes(t), s.kept(t)
	s.must(t, guest.Create(t.Context(), note("before-the-backup")))
	keyFile, url, err := s.BackUp(t.Context(), s.c, cluster)
	s.must(t, err)
	s.must(t, guest.Create(t.Context(), note("after-the-backup")))
	changes, err := journey.MAASChanges(t.Context())
	s.must(t, err)

	t.Setenv(s.StoreVariable())
	began := time.Now()
	s.must(t, s.Restore(t.Context(), keyFile, url, "--discard-data"))
	available := time.Since(began)
	guest, err = s.GuestClient(cluster)
	s.must(t, err)
	s.must(t, s.Reach(t.Context(), "what was there at the time of the backup", 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		err := guest.Get(ctx, client.ObjectKeyFromObject(note("before-the-backup")), &corev1.ConfigMap{})
		return err == nil, "", err
	}))
	g.Expect(apierrors.IsNotFound(guest.Get(t.Context(), client.ObjectKeyFromObject(note("after-the-backup")), &corev1.ConfigMap{}))).To(BeTrue(), "what came after the backup is gone")
	s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))
	s.must(t, s.Reach(t.Context(), "restored members agree", 3*time.Minute, s.agree))
	s.must(t, s.Reach(t.Context(), "node ready", 3*time.Minute, s.NodesReady(cluster, 1)))
	s.figures = append(s.figures, fmt.Sprintf("%-22s available after %s, whole after %s", "restored in place", available.Round(time.Second), time.Since(began).Round(time.Second)))
	s.Say("%s", s.figures[len(s.figures)-1])

	s.spread(t, map[string]int{"etcd": 3, "kube-apiserver": 3})
	fresh := s.volumes(t)
	g.Expect(fresh).To(HaveLen(len(volumes)))
	for member, volume := range volumes {
		g.Expect(fresh[member]).NotTo(Equal(volume), "%s has its data from the backup, none of its own", member)
	}
	g.Expect(s.running(t, m, guest)).To(Equal(before), "nothing was restarted, installed or made anew")
	g.Expect(s.kept(t)).To(Equal(pods), "no pod was replaced but those of etcd and the API server")
	later, err := journey.MAASChanges(t.Context())
	s.must(t, err)
	g.Expect(later).To(Equal(changes), "MAAS was asked to change machines")
	s.must(t, s.RunWorkload(t.Context(), cluster))
}

func note(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// running waits until a cluster has one machine, its Node and two pods, and returns their identities.
func (s *suite) running(t *testing.T, m *maas.Client, guest client.Client) (found map[string]string) {
	t.Helper()
	s.must(t, s.Reach(t.Context(), "a machine, its Node and two pods", 3*time.Minute, func(ctx context.Context) (_ bool, _ string, err error) {
		found, err = journey.Running(ctx, m, guest)
		return len(found) == 4, strings.Join(slices.Sorted(maps.Keys(found)), ", "), err
	}))
	return found
}

// kept returns the UIDs of the control plane pods that have no reason to be replaced. Their containers may restart, for
// example if they lose their lease in the guest.
func (s *suite) kept(t *testing.T) map[string]string {
	t.Helper()
	pods := &corev1.PodList{}
	s.must(t, s.c.List(t.Context(), pods, client.InNamespace(journey.HostedNamespace(cluster)), client.HasLabels{hyperv1.ControlPlaneComponentLabel}))
	kept := map[string]string{}
	for _, pod := range pods.Items {
		// Pods of Jobs end regularly, and pods of etcd belong to a StatefulSet.
		owner := metav1.GetControllerOf(&pod)
		if owner != nil && owner.Kind == "ReplicaSet" && pod.DeletionTimestamp.IsZero() && pod.Labels["app"] != "kube-apiserver" {
			kept[pod.Name] = string(pod.UID)
		}
	}
	return kept
}
