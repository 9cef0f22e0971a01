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

// scope is the state of one reconcile. Each field documents which phase sets it.
type scope struct {
	// hc is the object as it was read, plus the identities that prepare added.
	hc *hyperv1.HostedCluster
	// namespace is the namespace of the hosted control plane.
	namespace string

	// Set by observe.
	now time.Time
	// platform is nil if there is no plugin. If platformServed is false, the management cluster does not serve the
	// platform's kinds.
	platform       platform.Platform
	platformServed bool
	// refused is the reason why the namespace does not belong to this cluster; empty if it does, or does not exist.
	refused string
	// hcp is nil if it does not exist; the hosted control plane phase sets it after creation.
	hcp *hyperv1.HostedControlPlane
	// pools are the cluster's NodePools, sorted by name.
	pools []hyperv1.NodePool

	// securityUID is the user ID of pods if the management cluster assigns none; set by the namespace phase.
	securityUID string
	// pullSecret is the content of .dockerconfigjson; set by the pull secret phase.
	pullSecret []byte
	// trustBundle is in PEM format, empty if there is none; set by the additional trust bundle phase.
	trustBundle []byte
	// credentialsHash changes with the platform's credentials; set by the platform credentials phase.
	credentialsHash string
	// newCopy reports that this reconcile created a copy; set by the phases that copy.
	newCopy bool
	// images are the releases that the HostedControlPlane names; set by the release image phase.
	images images
	// wanted is the payload of spec.release. wantedControlPlane is the desired payload of the control plane. Both are set
	// by the release image phase.
	wanted, wantedControlPlane *releaseinfo.ReleaseImage
	// release is the payload that the control plane runs. It differs from the desired one while an upgrade is blocked; set
	// by the release payload phase.
	release *releaseinfo.ReleaseImage
	// waitsForTurn is the number of control planes that change at the same time while this one has to wait for them; 0 if
	// it does not wait. Set before the control-plane-operator changes.
	waitsForTurn int
	// upgradeBlocked is the reason why the desired release is not rolled out now; empty if it is. Set by the release image
	// phase.
	upgradeBlocked string

	// kubeconfig, customKubeconfig and kubeadminPassword name the Secrets beside the cluster, nil if they do not exist;
	// set by report before it computes the status.
	kubeconfig, customKubeconfig, kubeadminPassword *corev1.LocalObjectReference
	// ignitionServer is the Deployment of the ignition-server, nil if it does not exist. ignitionEndpoint is the address
	// at which machines reach it. Both are set by report before it computes the status.
	ignitionServer   *appsv1.Deployment
	ignitionEndpoint string

	// failures are the reasons why pods of the control plane do not run; set by report before it computes the status.
	failures []podfailure.Finding

	// conditions are those that phases set in this reconcile, by type. All others keep their last state.
	conditions map[string]metav1.Condition
	// cleared are the types of conditions that no longer apply and are removed.
	cleared []string
	// failure is the joined error of the phases; set by report.
	failure error
	// deletion describes what a deletion waits for; set by its steps.
	deletion string
}

func newScope(hc *hyperv1.HostedCluster) *scope {
	return &scope{hc: hc, namespace: naming.ControlPlaneNamespace(hc), conditions: map[string]metav1.Condition{}}
}

// setCondition records a condition for the status.
func (s *scope) setCondition(c metav1.Condition) {
	s.conditions[c.Type] = c
}

// accept sets a condition to true.
func (s *scope) accept(conditionType hyperv1.ConditionType) {
	s.setCondition(condition.True(string(conditionType), hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage))
}

// reject sets a condition to false.
func (s *scope) reject(conditionType hyperv1.ConditionType, reason, message string) {
	s.setCondition(condition.False(string(conditionType), reason, message))
}

// clear removes a condition that only exists together with its subject.
func (s *scope) clear(conditionType hyperv1.ConditionType) {
	s.cleared = append(s.cleared, string(conditionType))
}

// distribution returns the traits of the distribution of the control plane's release.
func (s *scope) distribution() distributions.Traits {
	return distributions.Of(s.release.Distribution())
}

// cluster returns the data that the platform's plugin may read.
func (s *scope) cluster(operatorImage string) platform.Cluster {
	return platform.Cluster{
		HostedCluster: s.hc, ControlPlane: s.hcp, Namespace: s.namespace,
		OperatorImage: operatorImage, NodePools: s.pools, CredentialsHash: s.credentialsHash,
	}
}

func (s *scope) key() client.ObjectKey { return client.ObjectKeyFromObject(s.hc) }

// backPointer returns the value of the annotation that maps an object to its HostedCluster.
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

// securityUserID returns securityUID as an integer for pods, or nil if the management cluster assigns user IDs itself.
func (s *scope) securityUserID() *int64 {
	uid, err := strconv.ParseInt(s.securityUID, 10, 64)
	if err != nil {
		return nil
	}
	return &uid
}
