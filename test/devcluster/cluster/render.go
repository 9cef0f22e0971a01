// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/openshift/hypershift/test/devcluster/env"
)

//go:embed root controlplane manifests
var embedded embed.FS

// StorageClass is the name of the default StorageClass.
const StorageClass = "local"

// Provisioner is the name of the environment's volume provisioner.
const Provisioner = "hypershift-maas/local"

// values are the template values of the embedded files.
type values struct {
	Gateway, Registry           string
	S3, Bucket                  string
	ServiceNetwork, PodNetwork  string
	DNSServiceIP, ClusterDomain string
	APIPort                     int
	Node                        env.Node
	Provisioner, StorageClass   string
	Images                      map[string]string
}

func newValues(node env.Node, images map[string]string) values {
	return values{
		Gateway: env.Gateway, Registry: env.Registry,
		S3: env.S3, Bucket: env.Bucket,
		ServiceNetwork: env.ServiceNetwork, PodNetwork: env.PodNetwork,
		DNSServiceIP: env.DNSServiceIP, ClusterDomain: env.ClusterDomain,
		APIPort: env.APIPort,
		Node:    node, Provisioner: Provisioner, StorageClass: StorageClass,
		Images: images,
	}
}

// renderRoot writes the embedded files into the machine's root folder, and enables the services among them.
func renderRoot(root string, v values) error {
	err := renderFolder("root", root, v)
	if err == nil && v.Node.First() {
		err = renderFolder("controlplane", root, v)
	}
	return err
}

func renderFolder(folder, root string, v values) error {
	return fs.WalkDir(embedded, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := render(name, v)
		if err != nil {
			return err
		}
		target := filepath.Join(root, rootPath(strings.TrimPrefix(name, folder+"/"), v))
		if err := writeFile(target, content, 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".service") {
			return enable(root, filepath.Base(name))
		}
		return nil
	})
}

// rootPath returns the target path of an embedded file. The folder of a registry is named after its address, which
// embed does not allow.
func rootPath(name string, v values) string {
	return strings.Replace(name, "certs.d/registry/", "certs.d/"+v.Registry+"/", 1)
}

func enable(root, unit string) error {
	link := filepath.Join(root, "etc/systemd/system/multi-user.target.wants", unit)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Symlink("../"+unit, link); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// renderManifests returns the objects that the environment applies to its cluster, as YAML documents.
func renderManifests(v values) ([]byte, error) {
	files, err := fs.Glob(embedded, "manifests/*.yaml")
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, file := range files {
		content, err := render(file, v)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "---\n%s\n", content)
	}
	return all.Bytes(), nil
}

func render(name string, v values) ([]byte, error) {
	text, err := embedded.ReadFile(name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// writeFile replaces a file atomically, so that no reader sees a partial file.
func writeFile(target string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(target+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(target+".new", target)
}
