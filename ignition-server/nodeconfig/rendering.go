// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

const (
	installUnitName = "hypershift-node-install.service"
	runtimeUnitName = "hypershift-containerd.service"
)

var (
	//go:embed files/kubelet.service
	kubeletUnit string
	//go:embed files/kubelet-by-node-agent.service
	agentKubeletUnit string
	//go:embed files/hypershift-node-install.service
	installUnit string
	//go:embed files/hypershift-containerd.service
	runtimeUnit string
	//go:embed files/kubelet-run
	kubeletScript string
	//go:embed files/hypershift-node-install
	installScript string
	//go:embed files/needrestart.conf
	needrestart string
)

// rendering is what differs between the two ways by which the one model comes onto a machine.
type rendering struct {
	// runtimeEndpoint is the socket of the container runtime.
	runtimeEndpoint string
	// kubelet is the unit that runs the kubelet, started at boot if enabled says so.
	kubelet *template.Template
	enabled *bool
	// runtime is the unit that brings or runs what the kubelet needs.
	runtime types.Unit
	// proxied are the units that reach what is outside of the cluster.
	proxied []string
	// images says what to bring, programs are those that bring it, and credentials are what images are pulled with.
	images      func(Input) []types.File
	programs    []types.File
	credentials func(Input) ([]types.File, error)
}

var (
	// byIgnition is for an image that has Ignition and a container runtime.
	byIgnition = rendering{
		runtimeEndpoint: "unix:///run/containerd/containerd.sock",
		kubelet:         template.Must(template.New(kubeletUnitName).Parse(kubeletUnit)),
		enabled:         ptr.To(true),
		runtime:         unitOf(installUnitName, installUnit),
		proxied:         []string{"containerd.service", installUnitName, kubeletUnitName},
		images: func(in Input) []types.File {
			return []types.File{file("/etc/kubernetes/node-install.env", 0o644, in.installEnv())}
		},
		programs: []types.File{
			file("/opt/kubernetes/bin/kubelet-run", 0o755, []byte(kubeletScript)),
			file("/opt/kubernetes/bin/hypershift-node-install", 0o755, []byte(installScript)),
		},
		credentials: Input.credentialFiles,
	}
	// byNodeAgent is for an image that has cloud-init: node-agent knows the images from its plan, brings the container runtime
	// too, and starts both units when all is there. A container runtime of the distribution keeps its socket and its folders.
	byNodeAgent = rendering{
		runtimeEndpoint: "unix:///run/hypershift/containerd/containerd.sock",
		kubelet:         template.Must(template.New(kubeletUnitName).Parse(agentKubeletUnit)),
		runtime:         types.Unit{Name: runtimeUnitName, Contents: ptr.To(runtimeUnit)},
		proxied:         []string{runtimeUnitName, kubeletUnitName},
		images:          func(Input) []types.File { return nil },
		programs:        []types.File{file("/etc/needrestart/conf.d/90-hypershift.conf", 0o644, []byte(needrestart))},
		credentials:     func(in Input) ([]types.File, error) { return in.pullSecretFile(), nil },
	}
)

// installEnv is sourced by a shell, so each value is quoted.
func (in Input) installEnv() []byte {
	return fmt.Appendf(nil, "NODE_IMAGE=%s\nPOD_IMAGE=%s\n", shellQuote(in.NodeImage), shellQuote(in.PodImage))
}

func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
