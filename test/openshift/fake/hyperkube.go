// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// programs is the folder with the programs of Kubernetes.
const programs = "/usr/bin"

// refused lists flags whose values only OpenShift's programs accept, or that need a program that does not run here.
var refused = []string{
	"feature-gates", "enable-admission-plugins", "disable-admission-plugins", "runtime-config", "authorization-mode",
	"authentication-token-webhook-config-file", "authentication-token-webhook-version", "egress-selector-config-file",
	"audit-webhook-config-file", "audit-webhook-mode", "cloud-provider", "openshift-config",
}

// configuration is the part of OpenShift's KubeAPIServerConfig that the kube-apiserver of Kubernetes takes as flags.
type configuration struct {
	Arguments   map[string][]string `json:"apiServerArguments"`
	ServingInfo struct {
		BindAddress       string `json:"bindAddress"`
		NamedCertificates []struct {
			CertFile string `json:"certFile"`
			KeyFile  string `json:"keyFile"`
		} `json:"namedCertificates"`
	} `json:"servingInfo"`
	ServicesSubnet string   `json:"servicesSubnet"`
	PublicKeys     []string `json:"serviceAccountPublicKeyFiles"`
}

// hyperkube replaces itself with a component of Kubernetes.
func hyperkube(args []string) error {
	name := "kube-apiserver"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if path := flag(args, "openshift-config"); path != "" && name == "kube-apiserver" {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		flags, err := apiServerFlags(text)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		args = append(flags, args...)
	}
	program := filepath.Join(programs, name)
	help, err := exec.CommandContext(context.Background(), program, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("reading the flags of %s: %w", name, err)
	}
	args, dropped := known(args, string(help))
	if name == "kube-apiserver" {
		// The webhooks of OpenShift's servers, which do not run here, would refuse every request.
		args = append(args, "--authorization-mode=Node,RBAC",
			"--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook")
	}
	fmt.Println("left out:", strings.Join(dropped, " "))
	return syscall.Exec(program, append([]string{name}, args...), os.Environ())
}

// apiServerFlags translates a KubeAPIServerConfig to flags.
func apiServerFlags(text []byte) ([]string, error) {
	var config configuration
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(config.Arguments)) {
		for _, value := range config.Arguments[name] {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	for _, file := range config.PublicKeys {
		flags = append(flags, "--service-account-key-file="+file)
	}
	for _, pair := range config.ServingInfo.NamedCertificates {
		flags = append(flags, "--tls-sni-cert-key="+pair.CertFile+","+pair.KeyFile)
	}
	if config.ServicesSubnet != "" {
		flags = append(flags, "--service-cluster-ip-range="+config.ServicesSubnet)
	}
	if i := strings.LastIndex(config.ServingInfo.BindAddress, ":"); i >= 0 {
		flags = append(flags, "--secure-port="+config.ServingInfo.BindAddress[i+1:])
	}
	return flags, nil
}

// helpFlag matches a flag in the help of a program of Kubernetes.
var helpFlag = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)

// known returns the flags that a program's help lists and that are not in refused, and the dropped other flags.
// OpenShift writes a flag and its value as one argument.
func known(args []string, help string) (taken, dropped []string) {
	has := map[string]bool{}
	for _, match := range helpFlag.FindAllStringSubmatch(help, -1) {
		has[match[1]] = true
	}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if arg == "-v" || strings.HasPrefix(arg, "-v=") || has[name] && !slices.Contains(refused, name) {
			taken = append(taken, arg)
		} else {
			dropped = append(dropped, arg)
		}
	}
	return taken, dropped
}
