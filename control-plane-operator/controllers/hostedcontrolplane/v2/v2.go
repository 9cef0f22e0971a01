// SPDX-License-Identifier: Apache-2.0

// Package v2 lists the components of a hosted control plane. Each component has a directory here. The components are
// reconciled in the order of the list. A component's dependencies decide what it waits for.
package v2

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/clusterautoscaler"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/configoperator"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/ignitionserver"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubecontrollermanager"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubescheduler"
	"github.com/openshift/hypershift/support/component"
)

// Config is what the control-plane-operator passes on to components that run its own image.
type Config struct {
	// ConfigOperatorImage is the image of the hosted-cluster-config-operator.
	ConfigOperatorImage string
	// RegistryOverrides is the operator's flag of the same name.
	RegistryOverrides string
	// ImageOverrides is the environment variable OPENSHIFT_IMG_OVERRIDES.
	ImageOverrides string
	// Inherited are environment variables that are passed on unchanged, such as HTTPS_PROXY.
	Inherited []corev1.EnvVar
}

// Kubernetes lists the components of a control plane of the Kubernetes distribution.
func Kubernetes(config Config) []*component.Component {
	return []*component.Component{
		etcd.New(),
		kubeapiserver.New(),
		kubecontrollermanager.New(),
		kubescheduler.New(),
		clusterautoscaler.New(),
		configoperator.New(configoperator.Config{
			Image: config.ConfigOperatorImage, RegistryOverrides: config.RegistryOverrides,
			ImageOverrides: config.ImageOverrides, Inherited: config.Inherited,
		}),
		ignitionserver.New(ignitionserver.Config{
			RegistryOverrides: config.RegistryOverrides, ImageOverrides: config.ImageOverrides, Inherited: config.Inherited,
		}),
	}
}
