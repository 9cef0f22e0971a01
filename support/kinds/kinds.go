// SPDX-License-Identifier: Apache-2.0

// Package kinds registers the Go types of all kinds whose CustomResourceDefinitions are in support/crds.
package kinds

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1beta2 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	corev1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	corev1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1beta2 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1beta2 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	agentv1beta1 "github.com/openshift/hypershift/api/agent/v1beta1"
	awsv1beta2 "github.com/openshift/hypershift/api/aws/v1beta2"
	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	kubevirtv1alpha1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/support/crds"
)

// byFolder lists the functions that register the kinds of each folder of support/crds.
var byFolder = map[string][]func(*runtime.Scheme) error{
	crds.HyperShift:     {hyperv1.AddToScheme},
	crds.Certificates:   {certificatesv1alpha1.AddToScheme},
	crds.Infrastructure: {infrav1.AddToScheme},
	crds.Agent:          {agentv1beta1.AddToScheme},
	crds.KubeVirt:       {kubevirtv1alpha1.AddToScheme},
	crds.AWS:            {awsv1beta2.AddToScheme},
	crds.ClusterAPI: {
		corev1beta1.AddToScheme, corev1beta2.AddToScheme, addonsv1beta1.AddToScheme, addonsv1beta2.AddToScheme,
		ipamv1beta1.AddToScheme, ipamv1beta2.AddToScheme, runtimev1alpha1.AddToScheme, runtimev1beta2.AddToScheme,
	},
	crds.OpenShift: {configv1.Install},
}

// Scheme returns a scheme with the kinds of some folders of support/crds, or of all folders if none is given. The types
// of the kinds of AWS have only the fields that the product reads.
func Scheme(folders ...string) (*runtime.Scheme, error) {
	if len(folders) == 0 {
		folders = slices.Sorted(maps.Keys(byFolder))
	}
	scheme := runtime.NewScheme()
	var problems []error
	for _, folder := range folders {
		add, ok := byFolder[folder]
		if !ok {
			problems = append(problems, fmt.Errorf("no Go types are known of the CRDs in folder %q", folder))
		}
		for _, register := range add {
			problems = append(problems, register(scheme))
		}
	}
	return scheme, errors.Join(problems...)
}
