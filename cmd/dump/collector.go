// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	callTimeout = 30 * time.Second
	// maxLogLines bounds the log of one container.
	maxLogLines = 20000
)

var listAll = metav1.ListOptions{}

// managementKinds and guestKinds are the cluster-scoped resources that are collected.
var (
	managementKinds = []string{"nodes", "namespaces", "customresourcedefinitions", "persistentvolumes", "storageclasses", "priorityclasses"}
	guestKinds      = []string{"nodes", "namespaces", "certificatesigningrequests", "clusterversions", "clusteroperators", "infrastructures", "networks", "apiservices"}
)

// hostGroups are the API groups of the assisted service (Agent, InfraEnv) and of the bare metal operator (BareMetalHost).
var hostGroups = []string{"agent-install.openshift.io", "metal3.io"}

// collector writes what it finds in one cluster below a folder.
type collector struct {
	root      string
	dynamic   dynamic.Interface
	clientset kubernetes.Interface
	resources []metav1.APIResource
	failures  []string
}

func newCollector(config *rest.Config, root string) (*collector, error) {
	config = rest.CopyConfig(config)
	config.Timeout = callTimeout
	// A dump is some thousand small reads, and somebody waits for it.
	config.QPS, config.Burst = 200, 400
	// Reading all that there is means reading what is deprecated too.
	config.WarningHandler = rest.NoWarnings{}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	c := &collector{root: root, dynamic: d, clientset: clientset}
	lists, err := clientset.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask %s for its resources: %w", config.Host, err)
	}
	c.note("discovery", err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("read API group %q: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			r.Group, r.Version = gv.Group, gv.Version
			if strings.Contains(strings.Join(r.Verbs, " "), "list") && !strings.Contains(r.Name, "/") {
				c.resources = append(c.resources, r)
			}
		}
	}
	return c, nil
}

func (c *collector) note(what string, err error) {
	if err != nil {
		c.failures = append(c.failures, what+": "+err.Error())
	}
}

func (c *collector) clusterScoped(ctx context.Context, names []string) {
	for _, r := range c.resources {
		for _, name := range names {
			if r.Name == name && !r.Namespaced {
				c.list(ctx, r, "", filepath.Join(c.root, "cluster-scoped-resources"))
			}
		}
	}
}

func (c *collector) namespace(ctx context.Context, namespace string) {
	folder := filepath.Join(c.root, "namespaces", namespace)
	for _, r := range c.resources {
		if r.Namespaced {
			c.list(ctx, r, namespace, folder)
		}
	}
	c.logs(ctx, namespace, filepath.Join(folder, "pods"))
}

// hosts collects what a namespace has of hosts that wait to be machines, and nothing else: other teams may keep theirs there.
func (c *collector) hosts(ctx context.Context, namespace string) {
	for _, r := range c.resources {
		if r.Namespaced && slices.Contains(hostGroups, r.Group) {
			c.list(ctx, r, namespace, filepath.Join(c.root, "namespaces", namespace))
		}
	}
}

// list writes the objects of one kind into one file: <folder>/<group>/<resource>.yaml.
func (c *collector) list(ctx context.Context, r metav1.APIResource, namespace, folder string) {
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
	list, err := c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, listAll)
	if err != nil {
		c.note("list "+gvr.String()+" of namespace "+namespace, err)
		return
	}
	if len(list.Items) == 0 {
		return
	}
	for i := range list.Items {
		redact(&list.Items[i])
	}
	group := r.Group
	if group == "" {
		group = "core"
	}
	text, err := yaml.Marshal(list.UnstructuredContent())
	if err != nil {
		c.note("encode "+gvr.String(), err)
		return
	}
	c.note("write "+gvr.String(), writeFile(filepath.Join(folder, group, r.Name+".yaml"), text))
}

// redact keeps the keys of a Secret and the size of each value, and drops what repeats the values or only fills space.
func redact(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if obj.GetKind() != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		data, found, err := unstructured.NestedMap(obj.Object, field)
		if !found || err != nil {
			unstructured.RemoveNestedField(obj.Object, field)
			continue
		}
		sizes := map[string]any{}
		for key, value := range data {
			sizes[key] = fmt.Sprintf("redacted, %d characters", len(fmt.Sprint(value)))
		}
		obj.Object[field] = sizes
	}
}

func (c *collector) logs(ctx context.Context, namespace, folder string) {
	pods, err := c.clientset.CoreV1().Pods(namespace).List(ctx, listAll)
	if err != nil {
		c.note("list the pods of namespace "+namespace, err)
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if status.RestartCount > 0 {
				c.log(ctx, pod, status.Name, true, folder)
			}
			c.log(ctx, pod, status.Name, false, folder)
		}
	}
}

func (c *collector) log(ctx context.Context, pod *corev1.Pod, container string, previous bool, folder string) {
	lines := int64(maxLogLines)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines}
	text, err := c.clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	if err != nil {
		c.note(fmt.Sprintf("read the log of %s/%s, container %s", pod.Namespace, pod.Name, container), err)
		return
	}
	name := container + ".log"
	if previous {
		name = container + ".previous.log"
	}
	c.note("write a log", writeFile(filepath.Join(folder, pod.Name, name), text))
}

// finish writes what could not be collected.
func (c *collector) finish() error {
	if len(c.failures) == 0 {
		return nil
	}
	return writeFile(filepath.Join(c.root, "not-collected.txt"), []byte(strings.Join(c.failures, "\n")+"\n"))
}

func writeFile(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
