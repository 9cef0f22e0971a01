// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/manifests"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRights runs the provider with exactly the permissions in its manifests.
func TestRights(t *testing.T) {
	t.Parallel()
	admin := testenv.Start(t, crds.Infrastructure, crds.ClusterAPI)
	endpoint, key := region(t, 2)
	s := newWorld(t, admin, testNamespace, endpoint, key)
	s.Expect(s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "capmaas-system"}})).To(Succeed())
	s.applyRights()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "capmaas-manager", Namespace: "capmaas-system"}}
	s.create(account)
	token := &authenticationv1.TokenRequest{}
	s.Expect(s.client.SubResource("token").Create(t.Context(), account, token)).To(Succeed())

	s.cfg = rest.AnonymousClientConfig(admin)
	s.cfg.BearerToken = token.Status.Token
	s.add()
	template := &infrav1.MaasMachineTemplate{ObjectMeta: s.meta("workers")}
	template.Spec.Template.Spec = infrav1.MaasMachineSpec{Image: "ubuntu/noble", MinCPU: ptr.To(1), MinMemory: ptr.To(1024)}
	s.create(template)
	told := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "EventList"}}
	s.converge(wire{}, hasty, patience, func() bool {
		s.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
		return len(template.Status.Capacity) > 0
	}, func() bool { // Check while it runs, since events are sent asynchronously.
		s.Expect(s.client.List(t.Context(), told)).To(Succeed())
		return len(told.Items) > 0
	})
	s.remove(s.machines()[0])
	s.converge(wire{}, hasty, patience)
	s.Expect(s.machines()).To(BeEmpty())
}

// applyRights creates the cluster roles of the release manifests.
func (s *world) applyRights() {
	s.t.Helper()
	files, err := manifests.Release{Image: "i", Version: "1.0.0"}.Render()
	s.Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(files["infrastructure-components.yaml"]), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(u); err == io.EOF {
			return
		} else if err != nil {
			s.t.Fatal(err)
		}
		if u.GroupVersionKind().Group == rbacv1.GroupName {
			s.create(u)
		}
	}
}
