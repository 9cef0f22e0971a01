package nodepool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"
)

func updateHistory(version string, at metav1.Time) configv1.UpdateHistory {
	return configv1.UpdateHistory{State: configv1.CompletedUpdate, StartedTime: at, CompletionTime: &at,
		Version: version, Image: "registry.example/release:" + version}
}
