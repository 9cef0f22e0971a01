// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/terminal"
)

// managementKinds and guestKinds are the cluster-scoped resources that are collected.
var (
	managementKinds = []string{"nodes", "namespaces", "customresourcedefinitions", "persistentvolumes", "storageclasses", "priorityclasses"}
	guestKinds      = []string{
		"nodes", "namespaces", "certificatesigningrequests", "clusterversions", "clusteroperators", "infrastructures",
		"networks", "apiservices",
	}
)

// hostGroups are the API groups of the assisted service (Agent, InfraEnv) and of the bare metal operator
// (BareMetalHost).
var hostGroups = []string{"agent-install.openshift.io", "metal3.io"}

// collector writes the objects of one cluster to a folder.
type collector struct {
	folder    folder
	dynamic   dynamic.Interface
	clientset kubernetes.Interface
	resources []metav1.APIResource
	failures  []string
	// received is the number of bytes that the API server has sent.
	received atomic.Int64
}

func newCollector(config *rest.Config, root *os.Root) (*collector, error) {
	c := &collector{folder: folder{root: root, left: maxTotal}}
	config = bounded(config, &c.received)
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	c.dynamic, c.clientset = d, clientset
	lists, err := clientset.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask %s for its resources: %w", config.Host, err)
	}
	c.note("discovery", err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			c.note("read an API group", err)
			continue
		}
		for _, r := range list.APIResources {
			r.Group, r.Version = gv.Group, gv.Version
			c.addResource(r)
		}
	}
	return c, nil
}

// addResource adds a resource that can be listed and whose names are safe in paths.
func (c *collector) addResource(r metav1.APIResource) {
	resource, sub, isSub := strings.Cut(r.Name, "/")
	if !slices.Contains(r.Verbs, "list") || isSub && checkName(resource) == nil && checkName(sub) == nil {
		return
	}
	names := []string{r.Name, r.Version}
	if r.Group != "" {
		names = append(names, r.Group)
	}
	for _, name := range names {
		if err := checkName(name); err != nil {
			c.note("collect a resource of the API", err)
			return
		}
	}
	if len(c.resources) == maxResources {
		c.note("collect "+r.Name, fmt.Errorf("the API has more than %d resources", maxResources))
		return
	}
	c.resources = append(c.resources, r)
}

// note adds a line to the index of what was not collected.
func (c *collector) note(what string, err error) {
	switch {
	case err == nil || len(c.failures) > maxFailures:
	case len(c.failures) == maxFailures:
		c.failures = append(c.failures, "and more")
	default:
		const longest = 1000
		line := redactURLs(what + ": " + err.Error())
		c.failures = append(c.failures, terminal.Line(line[:min(len(line), longest)]))
	}
}

func (c *collector) clusterScoped(ctx context.Context, names []string) {
	for _, r := range c.resources {
		if slices.Contains(names, r.Name) && !r.Namespaced {
			c.list(ctx, r, "", "cluster-scoped-resources")
		}
	}
}

func (c *collector) namespace(ctx context.Context, namespace string) {
	for _, r := range c.resources {
		if r.Namespaced {
			c.list(ctx, r, namespace, "namespaces", namespace)
		}
	}
	c.logs(ctx, namespace)
}

// hosts collects the host objects of a namespace and nothing else: other teams may use the namespace too.
func (c *collector) hosts(ctx context.Context, namespace string) {
	for _, r := range c.resources {
		if r.Namespaced && slices.Contains(hostGroups, r.Group) {
			c.list(ctx, r, namespace, "namespaces", namespace)
		}
	}
}

// list writes the objects of one kind into one file: <folder>/<group>/<resource>.yaml.
func (c *collector) list(ctx context.Context, r metav1.APIResource, namespace string, in ...string) {
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
	what := "list " + gvr.String() + " of namespace " + namespace
	all, err := c.pages(ctx, gvr, namespace)
	c.note(what, err)
	if len(all.Items) == 0 {
		return
	}
	for i := range all.Items {
		redact(&all.Items[i])
	}
	group := r.Group
	if group == "" {
		group = "core"
	}
	text, err := yaml.Marshal(all.UnstructuredContent())
	if err != nil {
		c.note("encode "+gvr.String(), err)
		return
	}
	parts := append(slices.Clone(in), group, r.Name+".yaml")
	c.note("write "+what, c.folder.write([]byte(terminal.Clean(string(text))), parts...))
}

// pages reads a list page by page. If it fails, it returns the error and what it has read before.
func (c *collector) pages(
	ctx context.Context, gvr schema.GroupVersionResource, namespace string,
) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{}
	options, before := metav1.ListOptions{Limit: pageSize}, c.received.Load()
	for range maxPages {
		page, err := c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return all, err
		}
		if all.Object == nil {
			all.Object = page.Object
		}
		all.Items = append(all.Items, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
		if c.received.Load()-before > maxList {
			break
		}
	}
	return all, fmt.Errorf("the list is longer; only its first %d objects are collected", len(all.Items))
}

func (c *collector) logs(ctx context.Context, namespace string) {
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		pods, err := c.clientset.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			c.note("list the pods of namespace "+namespace, err)
			return
		}
		for i := range pods.Items {
			c.logsOf(ctx, namespace, &pods.Items[i])
		}
		if options.Continue = pods.Continue; options.Continue == "" {
			return
		}
	}
	c.note("list the pods of namespace "+namespace, errors.New("the list does not end"))
}

func (c *collector) logsOf(ctx context.Context, namespace string, pod *corev1.Pod) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if status.RestartCount > 0 {
			c.log(ctx, namespace, pod.Name, status.Name, true)
		}
		c.log(ctx, namespace, pod.Name, status.Name, false)
	}
}

func (c *collector) log(ctx context.Context, namespace, pod, container string, previous bool) {
	what := fmt.Sprintf("read the log of %s/%s, container %s", namespace, pod, container)
	for _, name := range []string{pod, container} {
		if err := checkName(name); err != nil {
			c.note(what, err)
			return
		}
	}
	lines, bytes := int64(maxLogLines), int64(maxLogBytes)
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, LimitBytes: &bytes}
	text, err := c.clientset.CoreV1().Pods(namespace).GetLogs(pod, options).DoRaw(ctx)
	if err != nil {
		c.note(what, err)
		return
	}
	name := container + ".log"
	if previous {
		name = container + ".previous.log"
	}
	cleaned := terminal.Clean(redactURLs(string(text)))
	err = c.folder.write([]byte(cleaned), "namespaces", namespace, "pods", pod, name)
	c.note("write the log of "+namespace+"/"+pod, err)
}

// finish writes the index of what was not collected.
func (c *collector) finish() error {
	if len(c.failures) == 0 {
		return nil
	}
	// The index is written even if the dump is full.
	c.folder.left = maxTotal
	if err := c.folder.write([]byte(strings.Join(c.failures, "\n")+"\n"), index); err != nil {
		return fmt.Errorf("write %s: %w", index, err)
	}
	return nil
}
