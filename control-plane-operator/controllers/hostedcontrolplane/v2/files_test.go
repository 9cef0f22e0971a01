// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/component"
)

// mounted matches paths of files in flags and configuration.
var mounted = regexp.MustCompile(`/(?:etc|var|mnt)/[^,:"\s]+`)

// TestEachFileIsThere checks all pods of a control plane. A file in a program's flags or configuration must be mounted,
// and each mounted object must be created by some component. A pod waits indefinitely for a Secret that is never
// created.
func TestEachFileIsThere(t *testing.T) {
	scope := newScope(controlPlane(everything), append(everythingNeeds(t)[:4], secret("api-cert", map[string][]byte{"tls.crt": nil, "tls.key": nil}))...)
	scope.Images.(payload)["cluster-autoscaler"] = "registry.example/payload/cluster-autoscaler@sha256:0001"
	withPKI(t, scope)
	for _, c := range Kubernetes(Config{ConfigOperatorImage: "registry.example/hypershift:latest"}) {
		if err := c.Reconcile(t.Context(), scope); err != nil {
			t.Fatalf("component %s: %v", c.Name, err)
		}
		ready(t, scope, c.Name)
	}
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := scope.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for i := range deployments.Items {
		found += checkFiles(t, scope, deployments.Items[i].Name, deployments.Items[i].Spec.Template.Spec)
	}
	for i := range sets.Items {
		pod := sets.Items[i].Spec.Template.Spec
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: sets.Items[i].Spec.VolumeClaimTemplates[0].Name})
		found += checkFiles(t, scope, sets.Items[i].Name, pod)
	}
	if found < 40 {
		t.Errorf("only %d files were found, so that this test would prove little", found)
	}
}

// checkFiles returns the number of files that the containers of a pod refer to.
func checkFiles(t *testing.T, scope *component.Scope, workload string, pod corev1.PodSpec) int {
	t.Helper()
	volumes, texts := map[string][]string{}, ""
	for _, volume := range pod.Volumes {
		files, config := contentOf(t, scope, workload, volume)
		volumes[volume.Name] = files
		texts += config
	}
	count := 0
	for i, container := range append(pod.InitContainers, pod.Containers...) {
		told := strings.Join(container.Args, " ")
		if i >= len(pod.InitContainers) {
			// The container reads the configuration files in its volumes, so the files that these name are checked like
			// those in its flags.
			told += texts
		}
		for _, file := range mounted.FindAllString(told, -1) {
			count++
			if !reachable(container, volumes, strings.ReplaceAll(file, "$(POD_NAME)", "etcd-0")) {
				t.Errorf("container %s of %s is told of %s, which is not there", container.Name, workload, file)
			}
		}
	}
	return count
}

// contentOf returns the files of a volume, nil if programs write to it, and the text of those files that may refer to
// other files.
func contentOf(t *testing.T, scope *component.Scope, workload string, volume corev1.Volume) (files []string, text string) {
	t.Helper()
	get := func(name string, optional *bool, into client.Object) {
		err := scope.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into)
		if err != nil && !ptr.Deref(optional, false) {
			t.Errorf("%s would wait for ever for what it mounts as %s: %v", workload, volume.Name, err)
		}
	}
	switch {
	case volume.Secret != nil:
		found := &corev1.Secret{}
		get(volume.Secret.SecretName, volume.Secret.Optional, found)
		for key := range found.Data {
			files = append(files, key)
		}
		for _, item := range volume.Secret.Items {
			if _, ok := found.Data[item.Key]; !ok {
				t.Errorf("%s has no key %s in Secret %s", workload, item.Key, found.Name)
			}
			files = append(files, item.Path)
		}
		return append(files, ""), ""
	case volume.ConfigMap != nil:
		found := &corev1.ConfigMap{}
		get(volume.ConfigMap.Name, volume.ConfigMap.Optional, found)
		for key, value := range found.Data {
			files = append(files, key)
			text += " " + value
		}
		return append(files, ""), text
	}
	return nil, ""
}

// reachable reports whether a container finds a file: the innermost mount contains it, or is writable.
func reachable(container corev1.Container, volumes map[string][]string, file string) bool {
	for dir := file; dir != "/"; dir = filepath.Dir(dir) {
		for _, mount := range container.VolumeMounts {
			if mount.MountPath != dir {
				continue
			}
			if volumes[mount.Name] == nil {
				return true
			}
			relative := strings.TrimPrefix(strings.TrimPrefix(file, dir), "/")
			for _, has := range volumes[mount.Name] {
				if has == relative {
					return true
				}
			}
			return false
		}
	}
	return false
}
