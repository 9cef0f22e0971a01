// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/podfailure"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// scope is what one pass knows. Each field says who sets it.
type scope struct {
	// hc is the object as it was read, with the identities that prepare added.
	hc *hyperv1.HostedCluster
	// namespace is the hosted control plane's.
	namespace string

	// Set by observe.
	now time.Time
	// platform is nil where there is no plugin. One that is not platformServed lacks its kinds.
	platform       platform.Platform
	platformServed bool
	// refused says why the namespace is not this cluster's; empty when it is, or is not there.
	refused string
	// hcp is nil while there is none; the hosted control plane phase sets it when it made one.
	hcp *hyperv1.HostedControlPlane
	// pools are the cluster's, by name.
	pools []hyperv1.NodePool

	// securityUID is the user that pods run as where nothing else assigns one; set by the namespace phase.
	securityUID string
	// pullSecret is the content of .dockerconfigjson; set by the pull secret phase.
	pullSecret []byte
	// trustBundle is PEM, empty without one; set by the additional trust bundle phase.
	trustBundle []byte
	// credentialsHash changes with the platform's credentials; set by the platform credentials phase.
	credentialsHash string
	// newCopy reports that this reconcile wrote a copy that was not there; set by the phases that copy.
	newCopy bool
	// images are the releases that the HostedControlPlane names; set by the release image phase.
	images images
	// wanted is the payload of spec.release, and wantedControlPlane the one that the spec wants for the control plane; set by
	// the release image phase.
	wanted, wantedControlPlane *releaseinfo.ReleaseImage
	// release is the payload that the control plane runs, another than the wanted one while an upgrade is refused; set by the
	// release payload phase.
	release *releaseinfo.ReleaseImage
	// upgradeBlocked says why the wanted release is not rolled out now; empty when it is. Set by the release image phase.
	upgradeBlocked string

	// kubeconfig, customKubeconfig and kubeadminPassword name the Secrets beside the cluster, nil where there is none; set by
	// report before the status is computed.
	kubeconfig, customKubeconfig, kubeadminPassword *corev1.LocalObjectReference
	// ignitionServer is its Deployment, nil while there is none, and ignitionEndpoint where machines reach it; set by
	// report before the status is computed.
	ignitionServer   *appsv1.Deployment
	ignitionEndpoint string

	// failures are what keeps pods of the control plane from running; set by report before the status is computed.
	failures []podfailure.Finding

	// conditions are those that phases set in this pass, by type. Those that nobody set keep their last state.
	conditions map[string]metav1.Condition
	// cleared are the types of conditions that have nothing to tell any more, and go.
	cleared []string
	// failure is what the phases returned; set by report.
	failure error
	// deletion says what a deletion waits for; set by its steps.
	deletion string
}

func newScope(hc *hyperv1.HostedCluster) *scope {
	return &scope{hc: hc, namespace: naming.ControlPlaneNamespace(hc), conditions: map[string]metav1.Condition{}}
}

// setCondition records what a phase found out.
func (s *scope) setCondition(c metav1.Condition) {
	s.conditions[c.Type] = c
}

// accept records that all is well with a condition.
func (s *scope) accept(conditionType hyperv1.ConditionType) {
	s.setCondition(condition.True(string(conditionType), hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage))
}

// reject records what is wrong.
func (s *scope) reject(conditionType hyperv1.ConditionType, reason, message string) {
	s.setCondition(condition.False(string(conditionType), reason, message))
}

// clear takes away a condition that is only there while its subject is.
func (s *scope) clear(conditionType hyperv1.ConditionType) {
	s.cleared = append(s.cleared, string(conditionType))
}

// distribution are the traits of what the control plane's release carries.
func (s *scope) distribution() distributions.Traits {
	return distributions.Of(s.release.Distribution())
}

// cluster is what the platform's plugin may see.
func (s *scope) cluster(operatorImage string) platform.Cluster {
	return platform.Cluster{
		HostedCluster: s.hc, ControlPlane: s.hcp, Namespace: s.namespace,
		OperatorImage: operatorImage, NodePools: s.pools, CredentialsHash: s.credentialsHash,
	}
}

func (s *scope) key() client.ObjectKey { return client.ObjectKeyFromObject(s.hc) }

// backPointer is the annotation that maps an object of the hosted namespace to its HostedCluster.
func (s *scope) backPointer() string { return s.key().String() }

func groupKind(group, kind string) schema.GroupKind {
	return schema.GroupKind{Group: group, Kind: kind}
}

// annotate sets one annotation on an object.
func annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// label sets labels on an object and keeps the others.
func label(obj metav1.Object, labels map[string]string) {
	all := obj.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range labels {
		all[key] = value
	}
	obj.SetLabels(all)
}

// securityUserID is securityUID as pods want it, nil where the management cluster assigns user IDs itself.
func (s *scope) securityUserID() *int64 {
	uid, err := strconv.ParseInt(s.securityUID, 10, 64)
	if err != nil {
		return nil
	}
	return &uid
}
