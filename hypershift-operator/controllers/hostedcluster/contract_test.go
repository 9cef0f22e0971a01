// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"reflect"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/deletion"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/hosted"
)

// controlPlaneSpec returns the spec of a cluster's HostedControlPlane.
func controlPlaneSpec(t *testing.T, hc *hyperv1.HostedCluster) hyperv1.HostedControlPlaneSpec {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	NewWithT(t).Expect((&scope{Scope: &cluster.Scope{HC: hc}, images: images{release: hc.Spec.Release.Image}}).shapeControlPlane(hcp)).To(Succeed())
	return hcp.Spec
}

// renamed are fields that the HostedControlPlane does not copy unchanged: releases are resolved, and inputs reference
// copies.
var renamed = []string{"Platform", "PullSecret", "SSHKey", "AdditionalTrustBundle"}

// toCopies are references to a user's objects. The HostedControlPlane references their copies instead.
var toCopies = map[string]string{
	"AuditWebhook":             hosted.CopyName(hosted.UseAuditWebhook, "x"),
	"ServiceAccountSigningKey": naming.SAKey,
}

// TestControlPlaneSpec checks all fields that both kinds have, so that it also detects a new field that is not copied.
func TestControlPlaneSpec(t *testing.T) {
	source, target := reflect.TypeFor[hyperv1.HostedClusterSpec](), reflect.TypeFor[hyperv1.HostedControlPlaneSpec]()
	compared := 0
	for field := range source.Fields() {
		same, both := target.FieldByName(field.Name)
		if !both || same.Type != field.Type || slices.Contains(renamed, field.Name) {
			continue
		}
		compared++
		t.Run("When "+field.Name+" is set, it should be in the HostedControlPlane", func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			value := reflect.ValueOf(&hc.Spec).Elem().FieldByIndex(field.Index)
			fill(value)
			got := reflect.ValueOf(controlPlaneSpec(t, hc)).FieldByIndex(same.Index)
			want := value.Interface()
			if name, copied := toCopies[field.Name]; copied {
				want = &corev1.LocalObjectReference{Name: name}
			}
			NewWithT(t).Expect(got.Interface()).To(Equal(want))
			NewWithT(t).Expect(got.IsZero()).To(BeFalse())
		})
	}
	NewWithT(t).Expect(compared).To(BeNumerically(">", 20))
}

// fill sets a value and all values that it contains to nonzero values.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if v.Type().Elem().Kind() == reflect.Struct {
			fill(v.Index(0))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Field(i).Kind() != reflect.Pointer {
				fill(v.Field(i))
			}
		}
	}
}

func TestDeletionLeavesOthers(t *testing.T) {
	s := newWorld(t, fixture.Start(t), "neighbours")
	s.start(nil)
	s.mustPass()
	mine, others := fixture.NodePool(s.namespace), fixture.NodePool(s.namespace)
	mine.Name, others.Name, others.Spec.ClusterName = "mine", "others", "another-cluster"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "neighbour", Labels: map[string]string{cluster.OwnerNamespace: s.namespace, cluster.OwnerName: "another-cluster"}}}
	fixture.Create(t, s.client, mine, others, role)
	s.Expect(s.client.Delete(t.Context(), s.cluster())).To(Succeed())
	_, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	t.Run("When a cluster is deleted, it should delete its own NodePools", func(t *testing.T) {
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(mine), mine)
		NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
		NewWithT(t).Expect(err != nil || !mine.DeletionTimestamp.IsZero()).To(BeTrue())
	})
	t.Run("When a cluster is deleted, it should keep the NodePools of another cluster", func(t *testing.T) {
		NewWithT(t).Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(others), others)).To(Succeed())
		NewWithT(t).Expect(others.DeletionTimestamp).To(BeNil())
	})
	t.Run("When a cluster is deleted, it should keep the ClusterRoles of another cluster", func(t *testing.T) {
		deleter := deletion.Deleter{Client: s.Client}
		_, err := deleter.DeleteClusterRoles(t.Context(), &cluster.Scope{HC: s.cluster()})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(role), role)).To(Succeed())
	})
}

// TestEmptyKeys checks each way of copying a Secret or ConfigMap with missing and empty keys.
func TestEmptyKeys(t *testing.T) {
	c := fixture.Start(t)
	const namespace = "empty-keys"
	key := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "input-"}, Data: data}
	}
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	s := newWorld(t, c, namespace)
	for _, tc := range []struct {
		name  string
		data  map[string][]byte
		fails bool
	}{
		{"When a key is missing, it should be rejected", nil, true},
		{"When a key is empty, it should be rejected", map[string][]byte{"key": {}}, true},
		{"When a key has a value, it should be accepted", map[string][]byte{"key": []byte("value")}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			secret := key(tc.data)
			g.Expect(c.Create(t.Context(), secret)).To(Succeed())
			configMap := &corev1.ConfigMap{ObjectMeta: secret.ObjectMeta, Data: map[string]string{}}
			configMap.ResourceVersion = ""
			for name, value := range tc.data {
				configMap.Data[name] = string(value)
			}
			g.Expect(c.Create(t.Context(), configMap)).To(Succeed())
			scoped, sources := &cluster.Scope{HC: fixture.HostedCluster(namespace)}, secrets.Sources{Client: s.Client}
			_, ofSecret := sources.Secret(t.Context(), scoped, secret.Name, "key")
			_, ofConfigMap := sources.ConfigMap(t.Context(), scoped, secret.Name, "key")
			if !tc.fails {
				g.Expect(ofSecret).NotTo(HaveOccurred())
				g.Expect(ofConfigMap).NotTo(HaveOccurred())
				return
			}
			g.Expect(ofSecret).To(MatchError(ContainSubstring(`has no key "key", or an empty one: add it`)))
			g.Expect(ofConfigMap).To(MatchError(ContainSubstring(`has no key "key", or an empty one: add it`)))
		})
	}
}
