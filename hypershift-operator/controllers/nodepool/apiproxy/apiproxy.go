// SPDX-License-Identifier: Apache-2.0

// Package apiproxy renders the configuration that gives each OpenShift node a local address of its API server. It
// consists of an address on the loopback interface, and a static pod that forwards connections to the published API
// server. The pod runs HAProxy or, to connect through the cluster's HTTPS proxy, a program of the payload. Pods reach
// the API at the same address on every node, whichever way is used.
package apiproxy

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"text/template"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.ParseFS(assets, "assets/*"))

const (
	configDir   = "/etc/kubernetes/apiserver-proxy-config"
	proxyUser   = 1001
	machineRole = "worker"
)

// Input is the location of the API server and how nodes reach it.
type Input struct {
	// Image is the image of HAProxy or, with a Proxy, of the payload's control-plane-operator.
	Image string
	// Proxy is host:port of the HTTPS proxy through which nodes reach the API server; empty for a direct connection.
	Proxy string
	// InternalAddress and InternalPort are the local address and port.
	InternalAddress string
	InternalPort    int32
	// ExternalHost and ExternalPort are the published host and port of the API server.
	ExternalHost string
	ExternalPort int32
}

// Prefix returns the internal address with the prefix length for the loopback interface.
func (i Input) Prefix() string {
	if ip := net.ParseIP(i.InternalAddress); ip != nil && ip.To4() == nil {
		return i.InternalAddress + "/128"
	}
	return i.InternalAddress + "/32"
}

// Listen returns the internal address and port.
func (i Input) Listen() string {
	return net.JoinHostPort(i.InternalAddress, strconv.Itoa(int(i.InternalPort)))
}

// Backend returns the published host and port.
func (i Input) Backend() string {
	return net.JoinHostPort(i.ExternalHost, strconv.Itoa(int(i.ExternalPort)))
}

// hostPattern matches host names and IP addresses. None of its characters is special in HAProxy's configuration or a
// shell.
var hostPattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?$`)

// check rejects addresses that could be misinterpreted in the files that contain them.
func (i Input) check() error {
	if net.ParseIP(i.InternalAddress) == nil {
		return fmt.Errorf("the local address %q of the API server on nodes is not an IP address; check spec.networking.apiServer.advertiseAddress", i.InternalAddress)
	}
	if net.ParseIP(i.ExternalHost) == nil && !hostPattern.MatchString(i.ExternalHost) {
		return fmt.Errorf("the published host %q of the API server is neither a host name nor an IP address; check spec.services", i.ExternalHost)
	}
	return nil
}

// MachineConfig renders the MachineConfig in YAML.
func MachineConfig(in Input) (string, error) {
	if err := in.check(); err != nil {
		return "", err
	}
	config, err := ignitionConfig(in)
	if err != nil {
		return "", fmt.Errorf("rendering the API server proxy of nodes: %w", err)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("encoding the API server proxy of nodes: %w", err)
	}
	rendered, err := yaml.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1",
		"kind":       "MachineConfig",
		"metadata": map[string]any{
			"name":   "20-apiserver-haproxy",
			"labels": map[string]string{"machineconfiguration.openshift.io/role": machineRole},
		},
		"spec": map[string]any{"config": json.RawMessage(raw)},
	})
	return string(rendered), err
}

func ignitionConfig(in Input) (*ignition.Config, error) {
	config := &ignition.Config{Ignition: ignition.Ignition{Version: ignition.MaxVersion.String()}}
	for _, f := range assetsOf(in) {
		content, err := render(f.asset, in)
		if err != nil {
			return nil, err
		}
		config.Storage.Files = append(config.Storage.Files, file(f.path, content, f.mode))
	}
	pod, err := yaml.Marshal(staticPod(in))
	if err != nil {
		return nil, err
	}
	config.Storage.Files = append(config.Storage.Files, file("/etc/kubernetes/manifests/kube-apiserver-proxy.yaml", pod, 0o644))
	unit, err := render("apiserver-ip.service", in)
	if err != nil {
		return nil, err
	}
	config.Systemd.Units = []ignition.Unit{{Name: "apiserver-ip.service", Enabled: ptr.To(true), Contents: ptr.To(string(unit))}}
	return config, nil
}

// asset is a template and the path and mode of the file that it is rendered to.
type asset struct {
	path, asset string
	mode        int
}

func assetsOf(in Input) []asset {
	files := []asset{
		{"/usr/local/bin/setup-apiserver-ip.sh", "setup-apiserver-ip.sh", 0o755},
		{"/usr/local/bin/teardown-apiserver-ip.sh", "teardown-apiserver-ip.sh", 0o755},
	}
	if in.Proxy == "" {
		files = append(files, asset{configDir + "/haproxy.cfg", "haproxy.cfg", 0o644})
	}
	return files
}

func render(asset string, in Input) ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, asset, in); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func file(path string, content []byte, mode int) ignition.File {
	return ignition.File{
		Node: ignition.Node{Path: path, Overwrite: ptr.To(true)},
		FileEmbedded1: ignition.FileEmbedded1{
			Contents: ignition.Resource{Source: ptr.To(dataurl.EncodeBytes(content))},
			Mode:     ptr.To(mode),
		},
	}
}

// staticPod runs the forwarder in the node's host network.
func staticPod(in Input) *corev1.Pod {
	forwarder := haproxy(in)
	var volumes []corev1.Volume
	if in.Proxy != "" {
		forwarder = tunnel(in)
	} else {
		volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: configDir},
		}}}
	}
	forwarder.Image = in.Image
	forwarder.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](proxyUser)}
	forwarder.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("13m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "kube-apiserver-proxy", Labels: map[string]string{"k8s-app": "kube-apiserver-proxy"},
		},
		Spec: corev1.PodSpec{
			HostNetwork:       true,
			PriorityClassName: "system-node-critical",
			Containers:        []corev1.Container{forwarder},
			Volumes:           volumes,
		},
	}
}

// tunnel forwards connections by HTTP CONNECT. It has no probe, because a probe through the proxy would restart it at
// each interruption of the proxy.
func tunnel(in Input) corev1.Container {
	return corev1.Container{Name: "kubernetes-default-proxy", Command: []string{
		"control-plane-operator", "kubernetes-default-proxy",
		"--listen-addr=" + in.Listen(), "--proxy-addr=" + in.Proxy, "--apiserver-addr=" + in.Backend(),
	}}
}

func haproxy(in Input) corev1.Container {
	return corev1.Container{
		Name:    "haproxy",
		Command: []string{"haproxy", "-f", "/usr/local/etc/haproxy"},
		LivenessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/version", Scheme: corev1.URISchemeHTTPS, Host: in.InternalAddress, Port: intstr.FromInt32(in.InternalPort),
			}},
			InitialDelaySeconds: 120, PeriodSeconds: 120, FailureThreshold: 3, TimeoutSeconds: 160, SuccessThreshold: 1,
		},
		Ports:        []corev1.ContainerPort{{Name: "apiserver", ContainerPort: in.InternalPort, HostPort: in.InternalPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/usr/local/etc/haproxy"}},
	}
}
