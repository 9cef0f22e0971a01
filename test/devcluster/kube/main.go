// SPDX-License-Identifier: Apache-2.0

// Command kube is all of Kubernetes in one binary. It runs as the program that its first argument or its own file name
// selects: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl or etcd. One binary
// shares the 200 MB of code that six would repeat, and serves as one container image.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs maps a program's name to its main function; args[0] is the name.
var programs = map[string]func(args []string) int{
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-proxy":              command(proxy.NewProxyCommand),
	"kubectl":                 command(kubectl.NewDefaultKubectlCommand),
	"etcd":                    func(args []string) int { etcdmain.Main(args); return 0 },
}

func main() {
	args := os.Args
	args[0] = filepath.Base(args[0])
	if _, ok := programs[args[0]]; !ok && len(args) > 1 {
		args = args[1:]
	}
	run, ok := programs[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "kube: %q is not a program of this binary; name one of %s\n", args[0], strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run(args))
}

func command(build func() *cobra.Command) func(args []string) int {
	return func(args []string) int {
		os.Args = args
		return cli.Run(build())
	}
}

func names() []string {
	var all []string
	for name := range programs {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
