// SPDX-License-Identifier: Apache-2.0

package apiproxy

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var input = Input{Image: "haproxy:1", InternalAddress: "172.20.0.1", InternalPort: 6443, ExternalHost: "api.example", ExternalPort: 31443}

// files renders the MachineConfig, has Ignition validate it, and returns the files by path.
func files(t *testing.T, in Input) map[string]string {
	t.Helper()
	g := NewWithT(t)
	rendered, err := MachineConfig(in)
	g.Expect(err).NotTo(HaveOccurred())
	var machineConfig struct {
		Kind     string
		Metadata struct {
			Name   string
			Labels map[string]string
		}
		Spec struct{ Config json.RawMessage }
	}
	g.Expect(yaml.Unmarshal([]byte(rendered), &machineConfig)).To(Succeed())
	g.Expect(machineConfig.Kind).To(Equal("MachineConfig"))
	g.Expect(machineConfig.Metadata.Name).To(Equal("20-apiserver-haproxy"))
	g.Expect(machineConfig.Metadata.Labels).To(HaveKeyWithValue("machineconfiguration.openshift.io/role", "worker"))
	config, report, err := ignition.Parse(machineConfig.Spec.Config)
	g.Expect(err).NotTo(HaveOccurred(), report.String())
	g.Expect(config.Systemd.Units).To(ConsistOf(HaveField("Name", "apiserver-ip.service")))
	found := map[string]string{}
	for _, f := range config.Storage.Files {
		content, err := dataurl.DecodeString(*f.Contents.Source)
		g.Expect(err).NotTo(HaveOccurred())
		found[f.Path] = string(content.Data)
	}
	return found
}

func TestMachineConfig(t *testing.T) {
	t.Run("When the MachineConfig is rendered, nodes should get the address and a proxy to the API server", func(t *testing.T) {
		g, got := NewWithT(t), files(t, input)
		g.Expect(got).To(HaveLen(4))
		g.Expect(got["/usr/local/bin/setup-apiserver-ip.sh"]).To(ContainSubstring("ip address replace 172.20.0.1/32 dev lo"))
		g.Expect(got["/usr/local/bin/teardown-apiserver-ip.sh"]).To(ContainSubstring("ip address delete 172.20.0.1/32 dev lo"))
		g.Expect(got["/etc/kubernetes/apiserver-proxy-config/haproxy.cfg"]).To(And(
			ContainSubstring("bind 172.20.0.1:6443\n"), ContainSubstring("server controlplane api.example:31443\n")))
		var pod corev1.Pod
		g.Expect(yaml.Unmarshal([]byte(got["/etc/kubernetes/manifests/kube-apiserver-proxy.yaml"]), &pod)).To(Succeed())
		g.Expect(pod.Spec.HostNetwork).To(BeTrue())
		g.Expect(pod.Spec.Containers[0].Image).To(Equal("haproxy:1"))
		g.Expect(pod.Spec.Containers[0].LivenessProbe.HTTPGet.Host).To(Equal("172.20.0.1"))
	})
	t.Run("When the cluster is IPv6, it should write addresses in IPv6 notation", func(t *testing.T) {
		in := input
		in.InternalAddress, in.ExternalHost = "fd00::1", "2001:db8::1"
		g, got := NewWithT(t), files(t, in)
		g.Expect(got["/usr/local/bin/setup-apiserver-ip.sh"]).To(ContainSubstring("fd00::1/128"))
		g.Expect(got["/etc/kubernetes/apiserver-proxy-config/haproxy.cfg"]).To(And(ContainSubstring("bind [fd00::1]:6443"), ContainSubstring("[2001:db8::1]:31443")))
	})
	t.Run("When the API server is behind a Route, it should use no health check, since the router needs SNI", func(t *testing.T) {
		NewWithT(t).Expect(files(t, input)["/etc/kubernetes/apiserver-proxy-config/haproxy.cfg"]).NotTo(ContainSubstring("check"))
	})
	t.Run("When nodes reach the API server through a proxy, it should run the payload's own program", func(t *testing.T) {
		in := input
		in.Image, in.Proxy = "ocp-hypershift:1", "proxy.example:3128"
		g, got := NewWithT(t), files(t, in)
		g.Expect(got).To(HaveLen(3), "no configuration of HAProxy")
		var pod corev1.Pod
		g.Expect(yaml.Unmarshal([]byte(got["/etc/kubernetes/manifests/kube-apiserver-proxy.yaml"]), &pod)).To(Succeed())
		g.Expect(pod.Spec.Volumes).To(BeEmpty())
		g.Expect(pod.Spec.Containers).To(HaveLen(1))
		g.Expect(pod.Spec.Containers[0].Image).To(Equal("ocp-hypershift:1"))
		g.Expect(pod.Spec.Containers[0].Command).To(Equal([]string{"control-plane-operator", "kubernetes-default-proxy",
			"--listen-addr=172.20.0.1:6443", "--proxy-addr=proxy.example:3128", "--apiserver-addr=api.example:31443"}))
	})
	t.Run("When the input is the same, it should render the same MachineConfig, since a change replaces nodes", func(t *testing.T) {
		g := NewWithT(t)
		first, err := MachineConfig(input)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(MachineConfig(input)).To(Equal(first))
	})
}

// TestHostileHosts checks that no published address adds a line or a command to the files of a node.
func TestHostileHosts(t *testing.T) {
	for _, host := range []string{"a\n server evil 192.0.2.1:1", "$(id)", "a;reboot", "a b", "`id`", "", "-a", "fe80::1%eth0\nx"} {
		in := input
		in.ExternalHost = host
		_, err := MachineConfig(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("check spec.services")), "%q", host)
		in = input
		in.InternalAddress = host
		_, err = MachineConfig(in)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("check spec.networking")), "%q", host)
	}
}
