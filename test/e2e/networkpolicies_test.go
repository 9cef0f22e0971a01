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

// networkPolicies attacks as the administrator of a hosted cluster, whose API server proxies requests to any address
// in a pod's status. The addresses are in the management network and in the control plane of another hosted cluster.
func (s *suite) networkPolicies(t *testing.T) {
	s.createCluster(t, 1)
	other := s.cluster + "-other"
	t.Cleanup(func() { s.removeAfterFailure(t, "maas", other) })
	s.must(t, s.CreateCluster(t.Context(), other, 0, "--maas-api-key-file", s.keyFile))
	s.must(t, s.FollowCluster(t.Context(), other, 0))
	t.Run("kubelet of its own node is reached", func(t *testing.T) {
		// A kubelet gets its serving certificate some time after its node is Ready.
		worker := s.workerIP(t)
		s.reach(t, "kubelet that asks for credentials", soon, journey.Quick(func() (bool, string, error) {
			said := s.proxied(t, "kubelet", worker, "https", 10250)
			return strings.Contains(said, "provide credentials"), said, nil
		}))
	})
	hosted := journey.HostedNamespace(other)
	for _, target := range []struct {
		name, ip, scheme string
		port             int
	}{
		{"operator", s.podIP(t, journey.OperatorNamespace, "name", "operator"), "https", 9000},
		{"maas", env.Gateway, "http", 5240},
		{"management-api", env.Gateway, "https", env.APIPort},
		{"registry", env.Gateway, "https", 5000},
		{"etcd-metrics", s.podIP(t, journey.HostedNamespace(s.cluster), "app", "etcd"), "http", 2381},
		{"other-etcd", s.podIP(t, hosted, "app", "etcd"), "https", 2379},
		{"other-etcd-metrics", s.podIP(t, hosted, "app", "etcd"), "http", 2381},
		{"other-api", s.podIP(t, hosted, "app", "kube-apiserver"), "https", 6443},
	} {
		t.Run(target.name+" is not reached", func(t *testing.T) {
			s.blocked(t, target.name, target.ip, target.scheme, target.port)
		})
	}
	s.must(t, s.DestroyCluster(t.Context(), other))
	s.destroy(t)
}

// blocked waits until the guest's API server cannot reach an address. It may take a moment, because the network
// policy agent learns of a pod through a watch.
func (s *suite) blocked(t *testing.T, name, ip, scheme string, port int) {
	t.Helper()
	s.reach(t, name+" blocked", soon, journey.Quick(func() (bool, string, error) {
		said := s.proxied(t, name, ip, scheme, port)
		return strings.Contains(said, "no route to host"), said, nil
	}))
}

// proxied returns the response of the guest's API server for a pod with a forged address, or the error of the request.
func (s *suite) proxied(t *testing.T, name, ip, scheme string, port int) string {
	t.Helper()
	guest, err := s.GuestClient(s.cluster)
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
	out, err := s.Read(t.Context(), s.Guest(s.cluster, "get", "--request-timeout", "1m", "--raw",
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
	guest, err := s.GuestClient(s.cluster)
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
