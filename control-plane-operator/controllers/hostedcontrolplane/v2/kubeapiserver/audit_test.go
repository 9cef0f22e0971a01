// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apiserveraudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// auditing returns a cluster with an audit configuration.
func auditing(asked configv1.Audit) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{Audit: asked}}
	return hcp
}

// evaluator returns the policy evaluation of the API server, with the file that is rendered for a cluster.
func evaluator(t *testing.T, hcp *hyperv1.HostedControlPlane) apiserveraudit.PolicyRuleEvaluator {
	t.Helper()
	file := &corev1.ConfigMap{}
	if err := adaptAuditPolicy(t.Context(), &component.Scope{HCP: hcp}, file); err != nil {
		t.Fatal(err)
	}
	read, err := policy.LoadPolicyFromBytes([]byte(file.Data[auditPolicyKey]))
	if err != nil {
		t.Fatalf("the API server would not start with this policy: %v", err)
	}
	return policy.NewPolicyRuleEvaluator(read)
}

// request returns a request for a resource; groups are the groups of the user.
func request(verb, group, resource, sub string, groups ...string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "somebody", Groups: groups}, Verb: verb, APIGroup: group, Resource: resource, Subresource: sub, ResourceRequest: true,
	}
}

// visit returns a request for a path that is not a resource.
func visit(path string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "somebody"}, Verb: "get", Path: path}
}

const (
	nothing  = auditinternal.LevelNone
	metadata = auditinternal.LevelMetadata
	whole    = auditinternal.LevelRequestResponse
)

// TestAuditProfiles evaluates requests with the API server's own evaluator.
func TestAuditProfiles(t *testing.T) {
	profiles := []configv1.AuditProfileType{
		"", configv1.DefaultAuditProfileType, configv1.WriteRequestBodiesAuditProfileType, configv1.AllRequestBodiesAuditProfileType, configv1.NoneAuditProfileType,
	}
	type levels [5]auditinternal.Level
	all := func(level auditinternal.Level) levels { return levels{level, level, level, level, nothing} }
	for _, tc := range []struct {
		name string
		of   authorizer.AttributesRecord
		want levels
	}{
		{"a user reads a pod", request("get", "", "pods", ""), levels{metadata, metadata, metadata, whole, nothing}},
		{"a user creates a pod", request("create", "", "pods", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user patches a node", request("patch", "", "nodes", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user updates a ClusterRole", request("update", "rbac.authorization.k8s.io", "clusterroles", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user deletes a namespace", request("delete", "", "namespaces", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user deletes all pods", request("deletecollection", "", "pods", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user reads a Secret", request("get", "", "secrets", ""), all(metadata)},
		{"a user writes a Secret", request("create", "", "secrets", ""), all(metadata)},
		{"a user writes a ConfigMap, which may hold keys too", request("update", "", "configmaps", ""), all(metadata)},
		{"a user requests a token of a service account", request("create", "", "serviceaccounts", "token"), all(metadata)},
		{"a user has a token reviewed", request("create", "authentication.k8s.io", "tokenreviews", ""), all(metadata)},
		{"a user creates a service account", request("create", "", "serviceaccounts", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a user writes an event", request("create", "", "events", ""), all(nothing)},
		{"a user writes an event of its own group", request("create", "events.k8s.io", "events", ""), all(nothing)},
		{"a user renews a lease", request("update", "coordination.k8s.io", "leases", ""), all(nothing)},
		{"a user creates a lease", request("update", "coordination.k8s.io", "leasecandidates", ""), levels{metadata, metadata, whole, whole, nothing}},
		{"a node watches", request("watch", "", "pods", "", user.NodesGroup), all(nothing)},
		{"a node reads a pod", request("get", "", "pods", "", user.NodesGroup), levels{metadata, metadata, metadata, whole, nothing}},
		{"another user watches", request("watch", "", "pods", "", "auditors"), levels{metadata, metadata, metadata, whole, nothing}},
		{"a client probes readiness", visit("/readyz"), all(nothing)},
		{"a client probes a single check", visit("/livez/etcd"), all(nothing)},
		{"a client probes the old path", visit("/healthz"), all(nothing)},
		{"a client discovers the API", visit("/openapi/v3"), all(nothing)},
		{"a client requests the version", visit("/version"), all(nothing)},
		{"a user reads metrics", visit("/metrics"), levels{metadata, metadata, metadata, whole, nothing}},
	} {
		for i, profile := range profiles {
			t.Run("When "+tc.name+" under profile "+string(profile)+" it should log at the profile's level", func(t *testing.T) {
				got := evaluator(t, auditing(configv1.Audit{Profile: profile})).EvaluatePolicyRule(tc.of)
				NewWithT(t).Expect(got.Level).To(Equal(tc.want[i]))
			})
		}
	}
}

// TestAuditGroups checks that a rule of a group applies to all of its members and to no other user.
func TestAuditGroups(t *testing.T) {
	quietRobots := configv1.AuditCustomRule{Group: "robots", Profile: configv1.NoneAuditProfileType}
	watchedAuditors := configv1.AuditCustomRule{Group: "auditors", Profile: configv1.AllRequestBodiesAuditProfileType}
	ordinaryStaff := configv1.AuditCustomRule{Group: "staff"}
	read := func(groups ...string) authorizer.AttributesRecord { return request("get", "", "pods", "", groups...) }
	for _, tc := range []struct {
		name  string
		asked configv1.Audit
		of    authorizer.AttributesRecord
		want  auditinternal.Level
	}{
		{"no group has rules", configv1.Audit{}, read("robots"), metadata},
		{"a member of a group with profile None reads", configv1.Audit{CustomRules: []configv1.AuditCustomRule{quietRobots}}, read("robots"), nothing},
		{"another user reads", configv1.Audit{CustomRules: []configv1.AuditCustomRule{quietRobots}}, read("people"), metadata},
		{"a member of a group with profile AllRequestBodies reads", configv1.Audit{CustomRules: []configv1.AuditCustomRule{watchedAuditors}}, read("auditors"), whole},
		{"a member of a group with profile AllRequestBodies reads under the default profile None",
			configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: []configv1.AuditCustomRule{watchedAuditors}}, read("auditors"), whole},
		{"another user reads under the default profile None",
			configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: []configv1.AuditCustomRule{watchedAuditors}}, read("people"), nothing},
		{"a member of a group with profile AllRequestBodies reads a Secret", configv1.Audit{CustomRules: []configv1.AuditCustomRule{watchedAuditors}},
			request("get", "", "secrets", "", "auditors"), metadata},
		{"a member of a group with profile AllRequestBodies creates an Event", configv1.Audit{CustomRules: []configv1.AuditCustomRule{watchedAuditors}},
			request("create", "", "events", "", "auditors"), nothing},
		{"a group's rule has no profile", configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: []configv1.AuditCustomRule{ordinaryStaff}}, read("staff"), metadata},
		{"the reader is in two groups, the first of which is quiet",
			configv1.Audit{CustomRules: []configv1.AuditCustomRule{quietRobots, watchedAuditors}}, read("auditors", "robots"), nothing},
		{"the reader is in two groups, the first of which is watched",
			configv1.Audit{CustomRules: []configv1.AuditCustomRule{watchedAuditors, quietRobots}}, read("auditors", "robots"), whole},
		{"a node watches while a group has a rule", configv1.Audit{CustomRules: []configv1.AuditCustomRule{watchedAuditors}},
			request("watch", "", "pods", "", user.NodesGroup), nothing},
	} {
		t.Run("When "+tc.name+" it should log at the level of the first matching rule", func(t *testing.T) {
			got := evaluator(t, auditing(tc.asked)).EvaluatePolicyRule(tc.of)
			NewWithT(t).Expect(got.Level).To(Equal(tc.want))
		})
	}
}

func TestAuditFile(t *testing.T) {
	t.Run("When a request is received, it should not be logged until it is answered", func(t *testing.T) {
		got := evaluator(t, auditing(configv1.Audit{})).EvaluatePolicyRule(request("get", "", "pods", ""))
		NewWithT(t).Expect(got.OmitStages).To(ContainElement(auditinternal.StageRequestReceived))
	})
	for name, hcp := range map[string]*hyperv1.HostedControlPlane{
		"nothing is configured":               {},
		"the API server has no configuration": {Spec: hyperv1.HostedControlPlaneSpec{Configuration: &hyperv1.ClusterConfiguration{}}},
		"auditing is not mentioned":           auditing(configv1.Audit{}),
	} {
		t.Run("When "+name+" it should use and name the profile Default", func(t *testing.T) {
			g, file := NewWithT(t), &corev1.ConfigMap{}
			g.Expect(adaptAuditPolicy(t.Context(), &component.Scope{HCP: hcp}, file)).To(Succeed())
			g.Expect(file.Data).To(HaveKeyWithValue("profile", "Default"))
			g.Expect(evaluator(t, hcp).EvaluatePolicyRule(request("create", "", "pods", "")).Level).To(Equal(metadata))
		})
	}
}
