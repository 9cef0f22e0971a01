// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/podfailure"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// scope is the state of one reconcile: what all phases share, and what one phase hands to another. Each field documents
// which phase sets it.
type scope struct {
	*cluster.Scope

	// securityUID is the user ID of pods if the management cluster assigns none; set by the namespace phase.
	securityUID string
	// inputs are what the phases that copy Secrets read and created.
	inputs secrets.Inputs
	// images are the releases that the HostedControlPlane names; set by the release image phase.
	images images
	// wanted is the payload of spec.release. wantedControlPlane is the desired payload of the control plane. Both are set
	// by the release image phase.
	wanted, wantedControlPlane *releaseinfo.ReleaseImage
	// waitsForTurn is the number of control planes that change at the same time while this one has to wait for them; 0 if
	// it does not wait. Set before the control-plane-operator changes.
	waitsForTurn int
	// upgradeBlocked is the reason why the desired release is not rolled out now; empty if it is. Set by the release image
	// phase.
	upgradeBlocked string

	// access are the Secrets beside the cluster that give access to the guest; set by report before it computes the status.
	access secrets.Names
	// ignitionServer is the Deployment of the ignition-server, nil if it does not exist. ignitionEndpoint is the address
	// at which machines reach it. Both are set by report before it computes the status.
	ignitionServer   *appsv1.Deployment
	ignitionEndpoint string

	// failures are the reasons why pods of the control plane do not run; set by report before it computes the status.
	failures []podfailure.Finding

	// failure is the joined error of the phases; set by report.
	failure error
	// deletion describes what a deletion waits for; set by its steps.
	deletion string
}

func newScope(hc *hyperv1.HostedCluster) *scope { return &scope{Scope: cluster.NewScope(hc)} }
