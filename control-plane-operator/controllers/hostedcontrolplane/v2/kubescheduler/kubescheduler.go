// SPDX-License-Identifier: Apache-2.0

// Package kubescheduler is the component that schedules the hosted cluster's pods to its nodes.
package kubescheduler

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/tlsprofile"
)

// Name is the component's name.
const Name = "kube-scheduler"

const (
	configKey  = "config.json"
	kubeconfig = "/etc/kubernetes/kubeconfig/kubeconfig"
)

//go:embed manifests
var manifests embed.FS

// New returns the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(adapt),
			"config.yaml":     component.Adapt(adaptConfig),
			"pdb.yaml":        component.DisruptionBudget().When(component.OfSeveral),
		},
		Options: component.Options{MultiZone: true, WaitsFor: component.APIServerReady, WaitsInPod: true},
	}
}

func adapt(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	tls := tlsprofile.Of(scope.HCP)
	var f component.Flags
	f.Set("config", "/etc/kubernetes/config/"+configKey)
	f.Set("authentication-kubeconfig", kubeconfig)
	f.Set("authorization-kubeconfig", kubeconfig)
	f.Set("client-ca-file", "/etc/kubernetes/client-ca/ca.crt")
	f.Set("secure-port", "10259")
	f.Set("tls-cert-file", "/etc/kubernetes/certs/tls.crt")
	f.Set("tls-private-key-file", "/etc/kubernetes/certs/tls.key")
	f.Set("tls-min-version", tls.MinVersion)
	f.SetUnlessEmpty("tls-cipher-suites", strings.Join(tls.Ciphers, ","))
	f.Set("v", "2")
	deployment.Spec.Template.Spec.Containers[0].Args = f
	return nil
}

func adaptConfig(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	raw, err := json.Marshal(schedulerConfig(scope.HCP))
	if err != nil {
		return fmt.Errorf("rendering the scheduler configuration: %w", err)
	}
	cm.Data = map[string]string{configKey: string(raw)}
	return nil
}

// fields is a part of KubeSchedulerConfiguration. Its Go types would need a dependency on the scheduler.
type fields map[string]any

func schedulerConfig(hcp *hyperv1.HostedControlPlane) fields {
	config := fields{
		"apiVersion":       "kubescheduler.config.k8s.io/v1",
		"kind":             "KubeSchedulerConfiguration",
		"clientConnection": fields{"kubeconfig": kubeconfig},
		"leaderElection":   leaderElection(hcp),
		"enableProfiling":  false,
	}
	if profile := profileOf(hcp); profile != nil {
		config["profiles"] = []fields{profile}
	}
	return config
}

// leaderElection returns the lease times. Several replicas keep their leader through short outages of the API server.
// A single replica has no other candidate, and its successor must not wait for two minutes.
func leaderElection(hcp *hyperv1.HostedControlPlane) fields {
	if hcp.Spec.ControllerAvailabilityPolicy != hyperv1.HighlyAvailable {
		return fields{"leaderElect": true, "leaseDuration": "15s", "renewDeadline": "12s", "retryPeriod": "3s"}
	}
	return fields{"leaderElect": true, "leaseDuration": "137s", "renewDeadline": "107s", "retryPeriod": "26s"}
}

func profileOf(hcp *hyperv1.HostedControlPlane) fields {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Scheduler == nil {
		return nil
	}
	switch hcp.Spec.Configuration.Scheduler.Profile {
	case configv1.HighNodeUtilization:
		return fields{
			"schedulerName": "default-scheduler",
			"plugins": fields{"score": fields{
				"disabled": []fields{{"name": "NodeResourcesBalancedAllocation"}},
				"enabled":  []fields{{"name": "NodeResourcesFit", "weight": 5}},
			}},
			"pluginConfig": []fields{{"name": "NodeResourcesFit", "args": fields{
				"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs",
				"scoringStrategy": fields{"type": "MostAllocated"},
			}}},
		}
	case configv1.NoScoring:
		all := []fields{{"name": "*"}}
		return fields{
			"schedulerName": "default-scheduler",
			"plugins":       fields{"score": fields{"disabled": all}, "preScore": fields{"disabled": all}},
		}
	default:
		return nil
	}
}
