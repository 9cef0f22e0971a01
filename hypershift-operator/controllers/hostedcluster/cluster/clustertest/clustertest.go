// SPDX-License-Identifier: Apache-2.0

// Package clustertest has scopes and servers for tests of the phases of a HostedCluster's reconcile.
package clustertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

// Now is the time of all scopes.
var Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// ErrNotNow is the error of a request that a Server refuses.
var ErrNotNow = errors.New("not now")

// Server is an in-memory API server.
type Server struct {
	// Direct never fails requests.
	Direct client.WithWatch
	// Refusing fails the requests that contain Refuse, and records writes.
	Refusing client.WithWatch
	// Refuse is a substring of the requests that fail, such as "get v1.Secret clusters/demo"; empty for none.
	Refuse string
	// Wrote are the write requests, without the fields that they changed.
	Wrote []string
}

// NewServer returns a server with some objects.
func NewServer(objects ...client.Object) *Server {
	s := &Server{Direct: fake.NewClientBuilder().WithScheme(fixture.Scheme()).
		WithStatusSubresource(&hyperv1.HostedCluster{}).WithObjects(objects...).Build()}
	s.Refusing = testenv.Intercept(s.Direct, func(request testenv.Request) error {
		if s.Refuse != "" && strings.Contains(request.String(), s.Refuse) {
			return ErrNotNow
		}
		if request.Writes() {
			s.Wrote = append(s.Wrote, strings.TrimSpace(strings.TrimSuffix(request.String(), request.Fields)))
		}
		return request.Do()
	})
	return s
}

// Has reports whether an object exists, and reads it.
func (s *Server) Has(t *testing.T, obj client.Object) bool {
	t.Helper()
	err := s.Direct.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// Ours returns the metadata of an object that was created for the fixture's cluster.
func Ours(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name,
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/" + fixture.ClusterName}}
}

// Scope returns a scope of the fixture's cluster, modified by the test.
func Scope(mutate ...func(*cluster.Scope)) *cluster.Scope {
	s := cluster.NewScope(fixture.HostedCluster("clusters"))
	s.Now = Now
	for _, m := range mutate {
		m(s)
	}
	return s
}

// Running sets the release of the control plane, one of the fixture's payloads.
func Running(image string) func(*cluster.Scope) {
	return func(s *cluster.Scope) { s.Release = fixture.Payloads()[image] }
}

// Reporting sets the conditions that the control plane reports.
func Reporting(conditions ...metav1.Condition) func(*cluster.Scope) {
	return func(s *cluster.Scope) {
		s.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{Conditions: conditions}}
	}
}

// Is returns a condition.
func Is(conditionType hyperv1.ConditionType, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(conditionType), Status: status, Reason: reason, Message: message}
}
