// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/support/condition"
)

const expires = hyperv1.IgnitionServerTokenExpirationTimestampAnnotation

// pair returns the token Secret and the user-data Secret of a configuration.
func pair(hash string, annotations ...string) []client.Object {
	own := append([]string{hyperv1.NodePoolAnnotation, "clusters/demo"}, annotations...)
	return []client.Object{
		&corev1.Secret{ObjectMeta: scopetest.InHosted("token-demo-"+hash, own...), Data: map[string][]byte{hyperv1.TokenSecretTokenKey: []byte("token of " + hash)}},
		&corev1.Secret{ObjectMeta: scopetest.InHosted("user-data-demo-"+hash, hyperv1.NodePoolAnnotation, "clusters/demo")},
	}
}

// drawn returns a scope whose configuration is rendered.
func drawn(machines ...*clusterv1.Machine) *Secrets {
	s := pass(machines...)
	s.SetCondition(condition.True(hyperv1.NodePoolValidGeneratedPayloadConditionType, "AsExpected", ""))
	s.HC.Status.IgnitionEndpoint = "ign.example"
	s.Config.Format = hyperv1.UserDataIgnition
	return s
}

// retired returns the state of a configuration's Secrets.
func retired(t *testing.T, s *Secrets, hash string) string {
	t.Helper()
	token, userData := scopetest.Find(t, s.Client, &corev1.Secret{}, "token-demo-"+hash), scopetest.Find(t, s.Client, &corev1.Secret{}, "user-data-demo-"+hash)
	state := "stays"
	switch {
	case token == nil:
		state = "is gone"
	case token.Annotations[expires] != "":
		state = "goes at " + token.Annotations[expires]
	}
	if userData == nil {
		state += ", no user-data"
	}
	return state
}

const goes = "goes at 2026-11-24T14:00:00Z, no user-data"

func TestRetireTokens(t *testing.T) {
	set := func(current string) client.Object {
		return &clusterv1.MachineSet{ObjectMeta: scopetest.InHosted("demo", hyperv1.NodePoolCurrentConfigVersionAnnotation, current)}
	}
	for name, test := range map[string]struct {
		machines []*clusterv1.Machine
		change   func(*Secrets)
		extra    []client.Object
		want     string
	}{
		"no machine uses the configuration":                                    {nil, nil, nil, goes},
		"the configuration is the desired one":                                 {nil, func(s *Secrets) { s.Config.Hash = "old" }, nil, "stays"},
		"a machine is joining with the configuration":                          {[]*clusterv1.Machine{scopetest.Machine("a", "old")}, nil, nil, "stays"},
		"a machine is joining with another configuration, it should be marked": {[]*clusterv1.Machine{scopetest.Machine("a", "older")}, nil, nil, goes},
		"the machine with the configuration has joined":                        {[]*clusterv1.Machine{scopetest.Machine("a", "old", scopetest.Joined)}, nil, nil, goes},
		"the platform does not keep outdated user-data": {[]*clusterv1.Machine{scopetest.Machine("a", "old")}, func(s *Secrets) { s.Pool.Spec.Platform.Type = hyperv1.NonePlatform },
			nil, goes},
		"nodes are being updated from the configuration":     {nil, func(s *Secrets) { s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace }, []client.Object{set("old")}, "stays"},
		"all nodes have been updated from the configuration": {nil, func(s *Secrets) { s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace }, []client.Object{set("wanted")}, goes},
		"there is no MachineSet":                             {nil, func(s *Secrets) { s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace }, nil, goes},
		"a MachineSet is left from in-place updates":         {nil, nil, []client.Object{set("old")}, goes},
	} {
		t.Run("When the stream of a Kubernetes pool is set to "+name+", it should keep the Secrets only if a machine may need them", func(t *testing.T) {
			g, s := NewWithT(t), drawn(test.machines...)
			if test.change != nil {
				test.change(s)
			}
			strangers := &corev1.Secret{ObjectMeta: scopetest.InHosted("user-data-demo-strangers", hyperv1.NodePoolAnnotation, "clusters/demo-strangers")}
			other := &corev1.Secret{ObjectMeta: scopetest.InHosted("kubeconfig", hyperv1.NodePoolAnnotation, "clusters/demo")}
			s.on(nil, append(append(pair("old"), strangers, other), test.extra...)...)
			g.Expect(s.Retire(t.Context())).To(Succeed())
			g.Expect(retired(t, s, "old")).To(Equal(test.want))
			g.Expect(scopetest.Find(t, s.Client, &corev1.Secret{}, strangers.Name)).NotTo(BeNil())
			g.Expect(scopetest.Find(t, s.Client, &corev1.Secret{}, other.Name).Annotations).NotTo(HaveKey(expires))
		})
	}
}

func TestRetireOnce(t *testing.T) {
	const before = "2026-11-24T12:30:00Z"
	t.Run("When a token already expires, it should not postpone the expiration", func(t *testing.T) {
		g, s := NewWithT(t), drawn().on(nil, pair("old", expires, before)...)
		g.Expect(s.Retire(t.Context())).To(Succeed())
		g.Expect(retired(t, s, "old")).To(Equal("goes at " + before + ", no user-data"))
		g.Expect(scopetest.Find(t, s.Client, &rbacv1.Role{}, "token-demo-old")).NotTo(BeNil(), "the ignition-server must be able to delete it")
	})
	t.Run("When a machine needs an expiring token again, it should keep the token and renew the user-data", func(t *testing.T) {
		g, s := NewWithT(t), drawn(scopetest.Machine("a", "old")).on(nil, pair("old", expires, before)...)
		g.Expect(s.Retire(t.Context())).To(Succeed())
		g.Expect(retired(t, s, "old")).To(Equal("stays"))
		g.Expect(scopetest.Find(t, s.Client, &rbacv1.Role{}, "token-demo-old")).NotTo(BeNil())
		g.Expect(scopetest.Find(t, s.Client, &corev1.Secret{}, "user-data-demo-old").Data[userDataKey]).NotTo(BeEmpty())
	})
	t.Run("When the clock uses another time zone, it should write the expiration in UTC", func(t *testing.T) {
		g, s := NewWithT(t), drawn().on(nil, pair("old")...)
		s.Now = s.Now.In(time.FixedZone("east", 3600))
		g.Expect(s.Retire(t.Context())).To(Succeed())
		g.Expect(retired(t, s, "old")).To(Equal(goes))
	})
}

func TestRetireRefused(t *testing.T) {
	for refused, inPlace := range map[string]bool{
		"list SecretList": false, "list MachineSetList": false, "get MachineSet": true, "patch Secret": false, "delete Secret": false, "create Role": false,
	} {
		t.Run("When the stream of a Kubernetes pool is set to "+refused+" is refused, it should return the error", func(t *testing.T) {
			s := drawn()
			if inPlace {
				s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace
			}
			s.on(scopetest.Refusals{refused}, pair("old")...)
			NewWithT(t).Expect(s.Retire(t.Context())).To(MatchError(scopetest.ErrRefused))
		})
	}
	for _, refused := range []string{"patch Secret", "create Role", "update Secret"} {
		t.Run("When the stream of a Kubernetes pool is set to "+refused+" is refused for a Secret in use, it should return the error", func(t *testing.T) {
			s := drawn(scopetest.Machine("a", "old")).on(scopetest.Refusals{refused}, pair("old", expires, "2026-11-24T12:30:00Z")...)
			NewWithT(t).Expect(s.Retire(t.Context())).To(MatchError(scopetest.ErrRefused))
		})
	}
	t.Run("When a Secret cannot be deleted, it should still retire the others", func(t *testing.T) {
		g, s := NewWithT(t), drawn().on(scopetest.Refusals{"delete Secret"}, append(pair("old"), pair("older")...)...)
		g.Expect(s.Retire(t.Context())).To(MatchError(scopetest.ErrRefused))
		for _, hash := range []string{"old", "older"} {
			g.Expect(scopetest.Find(t, s.Client, &corev1.Secret{}, "token-demo-"+hash).Annotations).To(HaveKey(expires))
		}
	})
}

func TestUpdatedFrom(t *testing.T) {
	set := func() client.Object {
		return &clusterv1.MachineSet{ObjectMeta: scopetest.InHosted("demo", hyperv1.NodePoolCurrentConfigVersionAnnotation, "old")}
	}
	g, s := NewWithT(t), pass().on(nil, set())
	from, err := s.updatedFrom(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(from).To(BeEmpty(), "machines are replaced")
	s.Pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeInPlace
	from, err = s.updatedFrom(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(from).To(Equal("old"))
	from, err = s.on(scopetest.Refusals{"get MachineSet"}, set()).updatedFrom(t.Context())
	g.Expect(err).To(MatchError(scopetest.ErrRefused))
	g.Expect(from).To(BeEmpty())
}
