// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
)

const (
	// pluginsKey of EncryptionSecret holds the plugins of the configuration in the same Secret: the previous plugin of a
	// migration is no longer in any spec.
	pluginsKey = "plugins.json"

	// pluginPrefix is the prefix of the names of a plugin's container and volumes.
	pluginPrefix = "kms-"
	// pluginsDir has a directory for the socket of each plugin, in the container of the API server.
	pluginsDir = "/var/run/kms"
	// pluginTimeout is how long the API server waits for an answer of a plugin; the value is the default of Kubernetes.
	pluginTimeout = 3 * time.Second

	// PluginsCheck is the health check of API servers for all plugins.
	PluginsCheck = "kms-providers"
)

// plugins maps the names of plugins to their specs.
type plugins map[string]hyperv1.KMSPluginSpec

// wantedPlugin returns the plugin in the cluster's spec; nil if there is none.
func wantedPlugin(hcp *hyperv1.HostedControlPlane) *hyperv1.KMSPluginSpec {
	encryption := hcp.Spec.SecretEncryption
	if encryption == nil || encryption.Type != hyperv1.KMS || encryption.KMS == nil || encryption.KMS.Provider != hyperv1.KMSPlugin {
		return nil
	}
	return encryption.KMS.Plugin
}

// pluginsOf reads the plugins that the configuration in a Secret needs.
func pluginsOf(live *corev1.Secret) (plugins, error) {
	known := plugins{}
	raw := live.Data[pluginsKey]
	if len(raw) == 0 {
		return known, nil
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return nil, fmt.Errorf("reading the plugins in Secret %s: %w", EncryptionSecret, err)
	}
	return known, nil
}

// needed returns the plugins of the given providers. Their configuration is the one in the cluster's spec. A plugin
// that is no longer in the spec keeps its last known configuration.
func (p plugins) needed(providers []provider, wanted *hyperv1.KMSPluginSpec) (plugins, error) {
	needed := plugins{}
	for _, provider := range providers {
		if provider.Kind != kms {
			continue
		}
		spec, known := p[provider.Name]
		if wanted != nil && wanted.Name == provider.Name {
			spec, known = *wanted, true
		}
		if !known {
			return nil, fmt.Errorf("the encryption configuration in Secret %s needs plugin %q, which is not configured; name it in secretEncryption.kms.plugin",
				EncryptionSecret, provider.Name)
		}
		needed[provider.Name] = spec
	}
	return needed, nil
}

// write stores the plugins in the Secret of the configuration that needs them.
func (p plugins) write(secret *corev1.Secret) error {
	if len(p) == 0 {
		return nil
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("writing the plugins: %w", err)
	}
	secret.Data[pluginsKey] = raw
	return nil
}

// runPlugins adds the plugins of the current configuration to the pod of an API server.
func runPlugins(ctx context.Context, scope *component.Scope, pod *corev1.PodSpec) error {
	live := &corev1.Secret{}
	err := hosted.ReadTrusted(ctx, scope.Client, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: EncryptionSecret},
		live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", EncryptionSecret, err)
	}
	known, err := pluginsOf(live)
	if err != nil || len(known) == 0 {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := checkCredentials(ctx, scope, known[name]); err != nil {
			return err
		}
		addPlugin(pod, known[name])
	}
	toleratePlugins(&pod.Containers[0])
	return nil
}

// checkCredentials rejects a Secret of the control plane itself: a plugin is the user's program, and must not read keys
// of certificate authorities. Copies of the user's Secrets have no owner.
func checkCredentials(ctx context.Context, scope *component.Scope, plugin hyperv1.KMSPluginSpec) error {
	name := reference.Name(plugin.Credentials)
	if name == "" {
		return nil
	}
	secret := &corev1.Secret{}
	err := scope.Client.Get(ctx, client.ObjectKey{Namespace: scope.HCP.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s of plugin %s: %w", name, plugin.Name, err)
	}
	if len(secret.OwnerReferences) > 0 || name == pki.ServiceAccountKeys || name == EncryptionSecret {
		return fmt.Errorf("secretEncryption.kms.plugin.credentials: Secret %s is one of the control plane's own; give yours another name", name)
	}
	return nil
}

// addPlugin runs a plugin as a sidecar that starts before the API server and stops after it. An ordinary container
// would stop at the same time, but a terminating API server answers for more than a minute.
func addPlugin(pod *corev1.PodSpec, plugin hyperv1.KMSPluginSpec) {
	name := pluginPrefix + plugin.Name
	container := corev1.Container{
		Name: name, Image: plugin.Image, Args: plugin.Args, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		// The plugin is the tenant's program in a pod of high priority. If it uses too much memory, the memory limit makes
		// the kernel kill only the plugin.
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"),
			},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: name, MountPath: path.Dir(hyperv1.KMSPluginSocket)}},
	}
	mount(pod, name, path.Dir(socketOf(plugin.Name)),
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("16Mi"))}})
	if credentials := reference.Name(plugin.Credentials); credentials != "" {
		volume := "credentials-" + name
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: credentials}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: hyperv1.KMSPluginCredentials, ReadOnly: true})
	}
	pod.InitContainers = append(pod.InitContainers, container)
}

// toleratePlugins makes an API server count as started only when all its plugins answer, so that a rollout stops if a
// plugin fails. Later, a failing plugin does not take the API server out of service: it still serves all other data
// and what it has already decrypted. The liveness probe never checks plugins.
func toleratePlugins(container *corev1.Container) {
	container.StartupProbe.HTTPGet.Path = container.ReadinessProbe.HTTPGet.Path
	container.ReadinessProbe.HTTPGet.Path += "?exclude=" + PluginsCheck
}

// socketOf returns the path of a plugin's socket in the API server's container.
func socketOf(name string) string {
	return path.Join(pluginsDir, name, path.Base(hyperv1.KMSPluginSocket))
}

// PluginFault returns what keeps a plugin in a pod of the API server from running; empty if nothing does.
func PluginFault(pod *corev1.Pod) string {
	for _, status := range pod.Status.InitContainerStatuses {
		name, ours := strings.CutPrefix(status.Name, pluginPrefix)
		switch {
		case !ours:
		case status.State.Waiting != nil && status.State.Waiting.Reason != "PodInitializing":
			return strings.TrimSuffix(fmt.Sprintf("plugin %s cannot run: %s: %s", name, status.State.Waiting.Reason, status.State.Waiting.Message), ": ")
		case status.State.Terminated != nil:
			return fmt.Sprintf("plugin %s ended with exit code %d", name, status.State.Terminated.ExitCode)
		}
	}
	return ""
}

// HasPlugins reports whether a pod of the API server runs plugins.
func HasPlugins(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, pluginPrefix) })
}
