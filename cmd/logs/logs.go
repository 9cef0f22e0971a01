// SPDX-License-Identifier: Apache-2.0

// Package logs holds the command that prints the logs of a hosted cluster's control plane.
package logs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
)

// defaultTail is the number of lines of each container, unless the user asks for another.
const defaultTail = 100

// logs holds the state of one `logs`.
type logs struct {
	look.Flags
	clientset kubernetes.Interface

	cluster, component string
	container          string
	follow, previous   bool
	timestamps         bool
	tail               int64
	since              time.Duration
}

// NewCommand returns the command `logs CLUSTER [COMPONENT]`.
func NewCommand() *cobra.Command {
	l := &logs{}
	cmd := &cobra.Command{
		Use: "logs CLUSTER [COMPONENT]", Short: "Print the logs of a cluster's control plane",
		Long: "Print the logs of all pods in the hosted namespace of a cluster, or of one component. Each line begins " +
			"with pod and container. A component is named as in kubectl get controlplanecomponents; the name of a pod " +
			"works too.",
		Example: "  hypershift logs demo kube-apiserver --since 10m\n" +
			"  # Follow all pods of the control plane\n  hypershift logs demo --follow --tail 0",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return exit.UsageError(errors.New("name a cluster, and a component if you want one, e.g. hypershift logs demo " +
					"kube-apiserver"))
			}
			return nil
		},
		RunE: l.run,
	}
	flags := cmd.Flags()
	l.AddFlags(flags)
	flags.BoolVarP(&l.follow, "follow", "f", false, "print new lines, also of new pods, until you interrupt the command")
	flags.BoolVarP(&l.previous, "previous", "p", false, "print the logs of the previous instance of each container")
	flags.BoolVar(&l.timestamps, "timestamps", false, "print the time of each line")
	flags.Int64Var(&l.tail, "tail", defaultTail, "number of last lines of each container; -1 for all")
	flags.DurationVar(&l.since, "since", 0, "only lines that are not older than this, such as 10m (default: any age)")
	flags.StringVarP(&l.container, "container", "c", "", "only this container of each pod")
	cmd.ValidArgsFunction = l.completeArgs
	return cmd
}

func (l *logs) run(cmd *cobra.Command, args []string) error {
	l.cluster = args[0]
	if len(args) == 2 {
		l.component = args[1]
	}
	switch {
	case l.tail < -1:
		return exit.UsageError(fmt.Errorf("--tail %d: use 0 or more, or -1 for all lines", l.tail))
	case l.follow && l.previous:
		return exit.UsageError(errors.New("--previous prints containers that have ended, so that there is nothing to " +
			"follow: set one of them"))
	}
	if err := l.connect(); err != nil {
		return err
	}
	c, err := l.Connection.Client()
	if err != nil {
		return err
	}
	if _, err := look.New(c, nil).HostedCluster(cmd.Context(), l.Key(l.cluster)); err != nil {
		return err
	}
	return l.print(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func (l *logs) connect() error {
	config, err := l.Connection.Config()
	if err != nil {
		return err
	}
	if l.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connect to the management cluster at %s: %w", config.Host, err)
	}
	return nil
}

func (l *logs) namespace() string { return kube.HostedNamespace(l.Namespace, l.cluster) }

// source is an instance of a container whose log is printed. A container that restarts gets another id.
type source struct{ pod, container, id string }

func (s source) String() string { return s.pod + "/" + s.container }

// sources lists the containers whose logs are printed: those that have been started.
func (l *logs) sources(ctx context.Context) ([]source, error) {
	pods, err := l.pods(ctx)
	if err != nil {
		return nil, err
	}
	var found []source
	selected := 0
	for i := range pods {
		pod := &pods[i]
		if l.component != "" && componentOf(pod) != l.component && pod.Name != l.component {
			continue
		}
		selected++
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			started := status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
			if !started || l.container != "" && status.Name != l.container || l.previous && status.RestartCount == 0 {
				continue
			}
			found = append(found, source{pod.Name, status.Name, status.ContainerID})
		}
	}
	if selected == 0 {
		return nil, l.none(pods)
	}
	slices.SortFunc(found, func(a, b source) int { return strings.Compare(a.String(), b.String()) })
	return found, nil
}

// none says that no pod is selected, and which components exist.
func (l *logs) none(pods []corev1.Pod) error {
	if len(pods) == 0 {
		return fmt.Errorf("namespace %s has no pods of the control plane of cluster %s/%s: see "+
			"hypershift describe cluster %s -n %s",
			l.namespace(), l.Namespace, l.cluster, l.cluster, l.Namespace)
	}
	return fmt.Errorf("cluster %s/%s has no component %q; use one of %s",
		l.Namespace, l.cluster, l.component, strings.Join(components(pods), ", "))
}

func (l *logs) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := l.clientset.CoreV1().Pods(l.namespace()).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("you have no right to list pods in namespace %s, which has the control plane of cluster "+
			"%s/%s; ask an administrator of the management cluster for the logs", l.namespace(), l.Namespace, l.cluster)
	}
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", l.namespace(), err)
	}
	return list.Items, nil
}

// componentOf returns the component of a pod. Pods of an OpenShift release have the label app only.
func componentOf(pod *corev1.Pod) string {
	for _, label := range []string{hyperv1.ControlPlaneComponentLabel, "app"} {
		if name := pod.Labels[label]; name != "" {
			return name
		}
	}
	return pod.Name
}

func components(pods []corev1.Pod) []string {
	found := map[string]bool{}
	for i := range pods {
		found[componentOf(&pods[i])] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// completeArgs completes the cluster, and then the component.
func (l *logs) completeArgs(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return l.CompleteClusters(1)(cmd, args, typed)
	}
	if len(args) > 1 || l.connect() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l.cluster = args[0]
	ctx, cancel := context.WithTimeout(cmd.Context(), look.CompletionTimeout)
	defer cancel()
	pods, err := l.pods(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return components(pods), cobra.ShellCompDirectiveNoFileComp
}
