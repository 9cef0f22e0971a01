// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/objectstore/storetest"
)

// TestKeysOfIssuers checks keys with which AWS can verify tokens, and keys with which an API server does not sign.
func TestKeysOfIssuers(t *testing.T) {
	elliptical := func(curve elliptic.Curve) any {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return &key.PublicKey
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := publicPEM(t, elliptical(elliptic.P256()))
	for _, tc := range []struct {
		name      string
		key       any
		algorithm string
		bytes     int // length of a coordinate
		says      string
	}{
		{"When the key uses P-256, it should publish the algorithm ES256", elliptical(elliptic.P256()), "ES256", 32, ""},
		{"When the key uses P-384, it should publish the algorithm ES384", elliptical(elliptic.P384()), "ES384", 48, ""},
		{"When the key uses P-521, it should publish the algorithm ES512", elliptical(elliptic.P521()), "ES512", 66, ""},
		{"When the key's curve is not supported, it should return an error", elliptical(elliptic.P224()), "", 0, "public key 2: the API server does not sign with a key on curve P-224"},
		{"When the key's type is not supported, it should return an error", edwards, "", 0, "public key 2: the API server does not sign with a key of type ed25519.PublicKey"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			second, _ := publicPEM(t, tc.key)
			p, _ := withBucket(t, storetest.New(t))
			cluster := testCluster()
			cluster.HostedCluster.Spec.IssuerURL = "https://oidc.example/demo-abcde"
			documents, _, err := p.IssuerDocuments(t.Context(), testClient(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "sa-signing-key"},
				Data:       map[string][]byte{"service-account.pub": append(append([]byte{}, good...), second...)}}), cluster)
			if tc.says != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring("clusters-demo/sa-signing-key"), ContainSubstring(tc.says))))
				g.Expect(documents).To(BeEmpty(), "half of the keys would lock out who has a token of the other")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var set struct{ Keys []jwk }
			g.Expect(json.Unmarshal(documents[keysPath], &set)).To(Succeed())
			g.Expect(set.Keys).To(HaveLen(2))
			g.Expect(set.Keys[1].Algorithm).To(Equal(tc.algorithm))
			g.Expect(number(t, set.Keys[1].X).Sign()).To(Equal(1))
			for _, coordinate := range []string{set.Keys[1].X, set.Keys[1].Y} {
				g.Expect((len(coordinate)*6)/8).To(Equal(tc.bytes), "it is as long as the curve wants, whatever it begins with")
			}
			var about discovery
			g.Expect(json.Unmarshal(documents[discoveryPath], &about)).To(Succeed())
			want := []string{"ES256"}
			if tc.algorithm != "ES256" {
				want = append(want, tc.algorithm)
			}
			g.Expect(about.Algorithms).To(Equal(want), "each once")
		})
	}
}

// listless returns the client of a management cluster that fails each list request.
func listless(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return interceptor.NewClient(testClient(t, objects...).(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("timed out")
		}})
}

// TestUnread checks that a failed list does not count as an empty one.
func TestUnread(t *testing.T) {
	g := NewWithT(t)
	c := listless(t)
	_, err := (&Platform{}).OrphanedMachines(t.Context(), c, testCluster())
	g.Expect(err).To(MatchError("listing AWSMachines of namespace clusters-demo: timed out"))
	_, err = (&Platform{}).Connect(t.Context(), c, privateCluster())
	g.Expect(err).To(MatchError(ContainSubstring("listing AWSEndpointServices of namespace clusters-demo: timed out")))
	_, err = (&Platform{}).Disconnect(t.Context(), c, privateCluster())
	g.Expect(err).To(MatchError(ContainSubstring("timed out")))
}

// TestObjectsOfOthers checks that an object of another platform has no start, no capacity, and no tags to omit.
func TestObjectsOfOthers(t *testing.T) {
	g, p, pod := NewWithT(t), &Platform{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	g.Expect(p.MachineStart(pod)).To(BeZero())
	g.Expect(p.MachineCapacity(pod)).To(BeZero())
	g.Expect(p.RollingTemplate(pod)).To(BeIdenticalTo(pod))
	reason, message := p.MachineProblem(pod)
	g.Expect([]string{reason, message}).To(HaveEach(BeEmpty()))
	p.AdjustMachine(platform.Pool{HostedCluster: testCluster().HostedCluster, NodePool: &hyperv1.NodePool{}}, pod)
	g.Expect(pod).To(Equal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	machine := &awsv1.AWSMachine{Spec: awsv1.AWSMachineSpec{AdditionalTags: map[string]string{"a": "b"}}}
	p.AdjustMachine(platform.Pool{NodePool: &hyperv1.NodePool{}}, machine)
	g.Expect(machine.Spec.AdditionalTags).To(Equal(map[string]string{"a": "b"}), "without its cluster nobody knows all of its tags")
}

// TestOrphanWords checks the message of a waiting deletion. It contains the provider's message about the first
// machine, and the name of a machine without an instance.
func TestOrphanWords(t *testing.T) {
	g := NewWithT(t)
	machine := &awsv1.AWSMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "a", Finalizers: []string{awsv1.MachineFinalizer}},
		Status: awsv1.AWSMachineStatus{FailureReason: ptr.To("DeleteError"), FailureMessage: ptr.To("it is protected")}}
	why, err := (&Platform{}).OrphanedMachines(t.Context(), testClient(t, machine), testCluster())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(why).To(Equal("Waiting for AWS to terminate 1 instance; AWSMachine a: it is protected"))
	machine = &awsv1.AWSMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "a", Finalizers: []string{awsv1.MachineFinalizer}, DeletionTimestamp: ptr.To(metav1.Now())}}
	unknown := testCluster()
	unknown.HostedCluster.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.ValidAWSIdentityProvider), Status: metav1.ConditionFalse}}
	why, err = (&Platform{}).OrphanedMachines(t.Context(), testClient(t, machine), unknown)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(why).To(HaveSuffix("by hand: a"))
}
