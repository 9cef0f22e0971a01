// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// walls has the administrator of the guest send its API server into the management network: a pod that says that it has an address
// there is one that the API server will be a proxy to.
func (s *suite) walls(t *testing.T) {
	etcd, operator, worker := s.podIP(t, journey.HostedNamespace(cluster), "app", "etcd"), s.podIP(t, "hypershift", "name", "operator"), s.workerIP(t)
	t.Run("When it is sent to a kubelet of its own, it should get there", func(t *testing.T) {
		// A kubelet gets the certificate that it serves with some time after its node is Ready.
		s.reach(t, "kubelet that asks for credentials", soon, journey.Quick(func() (bool, string, error) {
			said := s.proxied(t, "kubelet", worker, "https", 10250)
			return strings.Contains(said, "provide credentials"), said, nil
		}))
	})
	for _, tt := range []struct {
		name, ip, scheme string
		port             int
	}{
		{"operator", operator, "https", 9000},
		{"maas", env.Gateway, "http", 5240},
		{"management-api", env.Gateway, "https", env.APIPort},
		{"registry", env.Gateway, "https", 5000},
		{"etcd-metrics", etcd, "http", 2381},
	} {
		t.Run("When it is sent to "+tt.name+", it should not get there", func(t *testing.T) {
			s.walled(t, tt.name, tt.ip, tt.scheme, tt.port)
		})
	}
}

// walled waits until the guest's API server does not get to an address: who enforces the policies learns of a pod by watching.
func (s *suite) walled(t *testing.T, name, ip, scheme string, port int) {
	t.Helper()
	s.reach(t, "wall before "+name, soon, journey.Quick(func() (bool, string, error) {
		said := s.proxied(t, name, ip, scheme, port)
		return strings.Contains(said, "no route to host"), said, nil
	}))
}

// proxied is what the guest's API server says of a pod that claims an address, or what kept it from being asked.
func (s *suite) proxied(t *testing.T, name, ip, scheme string, port int) string {
	t.Helper()
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	liar := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "liar-" + name},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "none", Image: "none"}}},
	}
	if err := guest.Create(t.Context(), liar); err != nil {
		return err.Error()
	}
	defer func() { _ = guest.Delete(t.Context(), liar) }()
	liar.Status.PodIP, liar.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	if err := guest.Status().Update(t.Context(), liar); err != nil {
		return err.Error()
	}
	out, err := s.Read(t.Context(), s.Guest(cluster, "get", "--request-timeout", "1m", "--raw",
		fmt.Sprintf("/api/v1/namespaces/default/pods/%s:%s:%d/proxy/metrics", scheme, liar.Name, port))...)
	return fmt.Sprint(out, err)
}

func (s *suite) podIP(t *testing.T, namespace, key, value string) string {
	t.Helper()
	pods := &corev1.PodList{}
	s.must(t, s.c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{key: value}))
	for i := range pods.Items {
		if net.ParseIP(pods.Items[i].Status.PodIP) != nil {
			return pods.Items[i].Status.PodIP
		}
	}
	t.Fatalf("no pod of namespace %s with %s=%s has an address", namespace, key, value)
	return ""
}

func (s *suite) workerIP(t *testing.T) string {
	t.Helper()
	guest, err := s.GuestClient(cluster)
	s.must(t, err)
	nodes := &corev1.NodeList{}
	s.must(t, guest.List(t.Context(), nodes))
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				return address.Address
			}
		}
	}
	t.Fatal("no node of the guest has an address")
	return ""
}
