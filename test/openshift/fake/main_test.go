// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestScript(t *testing.T) {
	t.Run("writes here-documents and copies files that exist", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		gate, copied := filepath.Join(dir, "manifests", "gate.yaml"), filepath.Join(dir, "copy.yaml")
		g.Expect(run("bash", []string{"-c", "set -e\ncat <<EOF >" + gate + "\nkind: FeatureGate\nEOF\n/usr/bin/render\n" +
			"cp " + gate + " " + copied + "\ncp /does/not/exist " + copied + "\n"})).To(Succeed())
		g.Expect(os.ReadFile(copied)).To(BeEquivalentTo("kind: FeatureGate"))
	})
}

func TestMachineConfigPrograms(t *testing.T) {
	t.Run("creates the folder that the ignition-server reads", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(run("machine-config-operator.rhel9", []string{"bootstrap", "--dest-dir", dir})).To(Succeed())
		g.Expect(filepath.Join(dir, "bootstrap", "manifests")).To(BeADirectory())
	})
	t.Run("reports a server without a port", func(t *testing.T) {
		NewWithT(t).Expect(run("machine-config-server", []string{"bootstrap"})).To(MatchError(ContainSubstring("no port")))
	})
}

func TestHyperkube(t *testing.T) {
	t.Run("translates OpenShift's configuration of the kube-apiserver to flags", func(t *testing.T) {
		g := NewWithT(t)
		flags, err := apiServerFlags([]byte(`{"apiServerArguments":{"b":["1","2"],"a":["x"]},"servicesSubnet":"172.31.0.0/16",
			"servingInfo":{"bindAddress":"0.0.0.0:6443","namedCertificates":[{"certFile":"c","keyFile":"k"}]},
			"serviceAccountPublicKeyFiles":["pub"]}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(flags).To(Equal([]string{
			"--a=x", "--b=1", "--b=2", "--service-account-key-file=pub", "--tls-sni-cert-key=c,k",
			"--service-cluster-ip-range=172.31.0.0/16", "--secure-port=6443",
		}))
	})
	t.Run("omits flags that Kubernetes does not have or would reject", func(t *testing.T) {
		g := NewWithT(t)
		help := "Flags:\n      --config string   file\n      --feature-gates mapStringBool\n  -h, --help   help\n"
		gates, file := "--feature-gates=OpenShiftOnly=true", "--openshift-config=y"
		taken, dropped := known([]string{"--config=x", gates, file, "-v=2"}, help)
		g.Expect(taken).To(Equal([]string{"--config=x", "-v=2"}))
		g.Expect(dropped).To(Equal([]string{gates, file}))
	})
}
