// SPDX-License-Identifier: Apache-2.0

package managementnetwork

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/hosted"
)

const (
	// ConfigMap is the name of the ConfigMap in each hosted namespace with which the operator passes the addresses to
	// the programs there. These programs have no permission to read Nodes.
	ConfigMap = "management-network"
	// Key is the key of the ConfigMap, and the name of the file where it is mounted.
	Key = "addresses.json"
	// MountDir is the folder where pods of the hosted namespace mount the ConfigMap.
	MountDir = "/etc/hypershift/management-network"
)

// Write puts the addresses into the ConfigMap.
func Write(a *Addresses, into *corev1.ConfigMap) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the addresses of the management cluster: %w", err)
	}
	into.Data = map[string]string{Key: string(text)}
	return nil
}

// Stored reads the addresses from the ConfigMap of a hosted namespace.
func Stored(ctx context.Context, reader client.Reader, namespace string) (*Addresses, error) {
	stored := &corev1.ConfigMap{}
	if err := hosted.ReadTrusted(ctx, reader, client.ObjectKey{Namespace: namespace, Name: ConfigMap}, stored); err != nil {
		return nil, fmt.Errorf("reading the addresses of the management cluster: %w", err)
	}
	return addressguard.ParseAddresses([]byte(stored.Data[Key]))
}

// Mount mounts the ConfigMap into the first container of a pod, and sets addressguard.EnvFile.
func Mount(pod *corev1.PodSpec) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: ConfigMap, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: ConfigMap}},
	}})
	container := &pod.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: ConfigMap, MountPath: MountDir, ReadOnly: true})
	container.Env = append(container.Env, corev1.EnvVar{Name: addressguard.EnvFile, Value: MountDir + "/" + Key})
}
