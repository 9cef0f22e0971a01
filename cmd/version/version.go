// SPDX-License-Identifier: Apache-2.0

// Package version holds the command that prints versions.
package version

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/supportedversions"
	"github.com/openshift/hypershift/support/version"
)

// Info is what the command prints.
type Info struct {
	// Client is the revision of this program.
	Client string `json:"client"`
	// Server is the revision of the installed operator.
	Server string `json:"server,omitempty"`
	// Supported lists the minor versions of OpenShift that the operator can host, newest first.
	Supported []string `json:"supportedVersions,omitempty"`
	// SupportedKubernetes lists the minor versions of Kubernetes that the operator can host.
	SupportedKubernetes []string `json:"supportedKubernetesVersions,omitempty"`
	// ServerRelease is the version number of the installed operator.
	ServerRelease string `json:"serverRelease,omitempty"`
	// Skew says what to do if this program and the operator have different version numbers.
	Skew string `json:"skew,omitempty"`
	// ServerError is the reason why the operator's data is missing.
	ServerError string `json:"serverError,omitempty"`
}

// NewCommand returns the command `version`.
func NewCommand() *cobra.Command {
	var connection kube.Connection
	var namespace, output string
	var commitOnly, clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the installed operator",
		Example: "  hypershift version\n" +
			"  # Without a management cluster\n" +
			"  hypershift version --client-only -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if commitOnly {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Commit())
				return err
			}
			info := Info{Client: version.Commit()}
			if !clientOnly {
				if err := readServer(cmd, &connection, namespace, &info); err != nil {
					info.ServerError = err.Error()
				}
			}
			return print(cmd.OutOrStdout(), info, output)
		},
	}
	cmd.Flags().BoolVar(&commitOnly, "commit-only", false, "print the revision of this program and nothing else")
	cmd.Flags().BoolVar(&clientOnly, "client-only", false, "do not ask the management cluster")
	cmd.Flags().StringVar(&namespace, "namespace", supportedversions.DefaultNamespace, "namespace of the operator")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml (default: text)")
	connection.AddFlags(cmd.Flags())
	return cmd
}

func readServer(cmd *cobra.Command, connection *kube.Connection, namespace string, info *Info) error {
	c, err := connection.Client()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: supportedversions.Name}
	cm := &corev1.ConfigMap{}
	if err := c.Get(cmd.Context(), key, cm); err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	info.Server = cm.Data[supportedversions.Server]
	info.Supported, err = minors(cm, supportedversions.OpenShift)
	if err != nil {
		return err
	}
	if info.SupportedKubernetes, err = minors(cm, supportedversions.Kubernetes); err != nil {
		return err
	}
	// The upstream operator supports no release of Kubernetes, and has other version numbers.
	if info.SupportedKubernetes != nil {
		info.compare(cmp.Or(cm.Data[supportedversions.Release], skew.First))
	}
	return nil
}

// compare records the operator's version number, and what to do if this program has another one.
func (i *Info) compare(operator string) {
	i.ServerRelease = operator
	if err := skew.Check(skew.CLI, skew.Version, operator); err != nil {
		i.Skew = err.Error()
	} else if operator != skew.Version {
		i.Skew = fmt.Sprintf("version %s of the command line works with version %s of the operator; "+
			"run hypershift install of the newer version to have one version", skew.Version, operator)
	}
}

// minors parses one of the lists. The ConfigMap of the upstream operator has the first list only.
func minors(cm *corev1.ConfigMap, key string) ([]string, error) {
	raw, ok := cm.Data[key]
	if !ok && key != supportedversions.OpenShift {
		return nil, nil
	}
	var list struct {
		Versions []string `json:"versions"`
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s holds no list of versions under %s: %w", cm.Namespace, cm.Name, key, err)
	}
	return list.Versions, nil
}

func print(w io.Writer, info Info, output string) error {
	switch output {
	case "":
		_, err := fmt.Fprint(w, text(info))
		return err
	case "json":
		raw, err := json.MarshalIndent(info, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, string(raw))
		return err
	case "yaml":
		raw, err := yaml.Marshal(info)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	default:
		return exit.UsageError(fmt.Errorf("--output %q: use json or yaml", output))
	}
}

func text(info Info) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Client Version: %s\n", info.Client)
	if info.ServerError != "" {
		fmt.Fprintf(&b, "Server Version: unknown: %s\n", info.ServerError)
	}
	if info.Server != "" {
		fmt.Fprintf(&b, "Server Version: %s\n", info.Server)
		if info.ServerRelease != "" {
			fmt.Fprintf(&b, "Client Release: %s\nServer Release: %s\n", skew.Version, info.ServerRelease)
		}
		fmt.Fprintf(&b, "Server Supports OCP Versions: %s\n", strings.Join(info.Supported, ", "))
		if len(info.SupportedKubernetes) > 0 {
			fmt.Fprintf(&b, "Server Supports Kubernetes Versions: %s\n", strings.Join(info.SupportedKubernetes, ", "))
		}
	}
	if info.Skew != "" {
		fmt.Fprintf(&b, "Note: %s\n", info.Skew)
	}
	return b.String()
}
