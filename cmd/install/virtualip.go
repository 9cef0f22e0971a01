// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/nodeaddress"
	"github.com/openshift/hypershift/support/rights"
)

const (
	virtualIPFlag = "api-virtual-ip"
	virtualIPName = nodeaddress.VirtualIPComponent
	// virtualIPHealthPort is reachable on the node only.
	virtualIPHealthPort  = 9467
	virtualIPMetricsPort = 9466
	// minVirtualIPLease is the shortest lease that the program accepts.
	minVirtualIPLease = 6 * time.Second
)

// virtualIP holds the flags of the addresses that move between the management cluster's nodes.
type virtualIP struct {
	addresses        []string
	networkInterface string
	nodes            map[string]string
	lease            time.Duration
	healthCheck      string
}

func (v *virtualIP) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&v.addresses, virtualIPFlag, nil,
		"addresses that one healthy node of the management cluster holds at a time, under which hosted clusters are reached (default: none; empty removes those of an earlier installation)")
	flags.StringVar(&v.networkInterface, "api-virtual-ip-interface", "", "network interface of the nodes that has them (default: the one in whose network an address is)")
	flags.StringToStringVar(&v.nodes, "api-virtual-ip-node-selector", nil, "labels of the nodes that may hold them (default: all Linux nodes)")
	flags.DurationVar(&v.lease, "api-virtual-ip-lease-duration", minVirtualIPLease,
		"how long other nodes wait before they take over from a failed node; a management API that is unavailable for two thirds of it also makes the node release the addresses")
	flags.StringVar(&v.healthCheck, "api-virtual-ip-health-check", "http://127.0.0.1:10256/healthz",
		"health check URL on each node, by default kube-proxy's; once it has responded, a node holds the addresses only while it responds; empty for none")
}

func (v *virtualIP) complete(flags *pflag.FlagSet) error {
	for i, text := range v.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil || !address.IsGlobalUnicast() || address.Zone() != "" {
			return fmt.Errorf("--%s %q: use addresses of the nodes' subnet that nothing has, such as 10.0.0.5", virtualIPFlag, text)
		}
		v.addresses[i] = address.Unmap().String()
	}
	if v.lease < minVirtualIPLease {
		return fmt.Errorf("--api-virtual-ip-lease-duration must be %s or more", minVirtualIPLease)
	}
	if len(v.addresses) > 0 {
		return nil
	}
	for _, name := range []string{"interface", "node-selector", "lease-duration", "health-check"} {
		if flag := virtualIPFlag + "-" + name; flags.Changed(flag) {
			return fmt.Errorf("--%s needs --%s", flag, virtualIPFlag)
		}
	}
	return nil
}

// virtualIPNamespace returns a separate namespace: its pods use the host network, which the operator's pods do not
// need.
func (o *Options) virtualIPNamespace() string { return o.namespace + "-virtual-ip" }

// virtualIPObjects returns the objects that announce the addresses; none if there are no addresses.
func (o *Options) virtualIPObjects() []client.Object {
	if len(o.virtualIP.addresses) == 0 {
		return nil
	}
	here := metav1.ObjectMeta{Namespace: o.virtualIPNamespace(), Name: virtualIPName}
	objs := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.virtualIPNamespace(), Labels: map[string]string{
			componentLabel: virtualIPName, "pod-security.kubernetes.io/enforce": "privileged",
		}}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: here}
	if len(o.pullSecret) > 0 {
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
		objs = append(objs, o.pullSecretIn(here.Namespace))
	}
	objs = append(objs, account, &rbacv1.Role{ObjectMeta: here, Rules: rights.VirtualIP()}, o.virtualIPBinding(here, rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "Role", Name: virtualIPName,
	}), o.virtualIPReviews())
	if o.apis.Has(management.Security) {
		privileged := metav1.ObjectMeta{Namespace: here.Namespace, Name: virtualIPName + "-privileged"}
		objs = append(objs, o.virtualIPBinding(privileged, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:openshift:scc:privileged"}))
	}
	return append(objs, o.virtualIPDaemonSet(here))
}

func (o *Options) virtualIPSubjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.virtualIPNamespace(), Name: virtualIPName}}
}

func (o *Options) virtualIPBinding(meta metav1.ObjectMeta, role rbacv1.RoleRef) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: o.virtualIPSubjects()}
}

// virtualIPReviews lets the pods check which users may read their metrics.
func (o *Options) virtualIPReviews() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: o.virtualIPNamespace()}, Subjects: o.virtualIPSubjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
	}
}

func (o *Options) virtualIPDaemonSet(meta metav1.ObjectMeta) *appsv1.DaemonSet {
	labels := map[string]string{"app": virtualIPName, operatorLabel: virtualIPName}
	nodes := map[string]string{corev1.LabelOSStable: "linux"}
	for key, value := range o.virtualIP.nodes {
		nodes[key] = value
	}
	meta.Labels = labels
	meta.Annotations = map[string]string{hyperv1.APIVirtualIPAnnotation: strings.Join(o.virtualIP.addresses, ",")}
	return &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": virtualIPName}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: virtualIPName,
				HostNetwork:        true,
				NodeSelector:       nodes,
				// The taint keeps other pods off control plane nodes, and these nodes are the permanent ones.
				Tolerations:                   []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
				PriorityClassName:             "system-node-critical",
				TerminationGracePeriodSeconds: ptr.To[int64](10),
				Containers:                    []corev1.Container{o.virtualIPContainer()},
			}},
		},
	}
}

func (o *Options) virtualIPContainer() corev1.Container {
	v := &o.virtualIP
	args := []string{
		"virtual-ip", "--address=" + strings.Join(v.addresses, ","), "--lease-duration=" + v.lease.String(),
		fmt.Sprintf("--metrics-addr=:%d", virtualIPMetricsPort), fmt.Sprintf("--health-probe-addr=127.0.0.1:%d", virtualIPHealthPort),
	}
	if v.networkInterface != "" {
		args = append(args, "--interface="+v.networkInterface)
	}
	if v.healthCheck != "" {
		args = append(args, "--health-check="+v.healthCheck)
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "127.0.0.1", Path: path, Port: intstr.FromInt32(virtualIPHealthPort)}},
			PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: 6,
		}
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	return corev1.Container{
		Name:            virtualIPName,
		Image:           o.image,
		ImagePullPolicy: corev1.PullPolicy(o.pullPolicy),
		Command:         []string{"/usr/bin/hypershift-operator"},
		Args:            args,
		Env:             []corev1.EnvVar{field("NODE_NAME", "spec.nodeName"), field("MY_NAMESPACE", "metadata.namespace")},
		Ports:           []corev1.ContainerPort{{Name: "metrics", ContainerPort: virtualIPMetricsPort}},
		LivenessProbe:   probe("/healthz"),
		ReadinessProbe:  probe("/readyz"),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		// Capabilities need root: for another user the kernel adds them only to the bounding and inheritable sets.
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                ptr.To[int64](0),
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// checkVirtualIP checks which addresses an earlier installation announces. Hosted clusters depend on them, so they are
// removed only if the user requests it.
func (i *install) checkVirtualIP(ctx context.Context, c client.Client, told bool) error {
	switch {
	case i.scope == scopeCRDs:
		return nil
	case len(i.virtualIP.addresses) > 0:
		return i.refuseTaken(ctx, c)
	}
	existing := &appsv1.DaemonSet{}
	err := c.Get(ctx, client.ObjectKey{Namespace: i.virtualIPNamespace(), Name: virtualIPName}, existing)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for a virtual IP of an earlier installation: %w", err)
	case told:
		return nil
	}
	addresses := existing.Annotations[hyperv1.APIVirtualIPAnnotation]
	return fmt.Errorf("the management cluster holds the virtual IP %s: keep it with --%s %s, or remove it with --%s ''", addresses, virtualIPFlag, addresses, virtualIPFlag)
}

// refuseTaken rejects addresses that belong to a node.
func (i *install) refuseTaken(ctx context.Context, c client.Client) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list the management cluster's nodes to check --%s: %w", virtualIPFlag, err)
	}
	for _, node := range nodes.Items {
		for _, has := range node.Status.Addresses {
			for _, address := range i.virtualIP.addresses {
				if has.Address == address {
					return fmt.Errorf("--%s %s is the address of node %s: choose one that nothing has, or give the node another first", virtualIPFlag, address, node.Name)
				}
			}
		}
	}
	return nil
}

// dropVirtualIP removes the objects of an earlier installation if no address is requested any more.
func (i *install) dropVirtualIP(ctx context.Context, c client.Client) error {
	if len(i.virtualIP.addresses) > 0 {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.virtualIPNamespace()}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.Labels[componentLabel] != virtualIPName {
		return client.IgnoreNotFound(err)
	}
	for _, left := range []client.Object{i.virtualIPReviews(), namespace} {
		if err := c.Delete(ctx, left); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", objects.Describe(left), err)
		}
	}
	return nil
}
