// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// maxContent limits the size of a file after decompression.
const maxContent = 32 << 20

// RenderPlan returns the node plan (JSON) of a machine with cloud-init. It renders the same model as Render, in the
// format of node-agent. Its errors describe problems of the input and their remedies.
func RenderPlan(in Input) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	user, err := nodeinput.ReadFor(in.Config, releaseinfo.Kubernetes, nodeinput.ByNodeAgent)
	if err != nil {
		return nil, err
	}
	model, err := in.model(user)
	if err != nil {
		return nil, err
	}
	for _, cfg := range user.Ignition {
		model = igncfg.Merge(model, cfg)
	}
	plan, err := in.releasePlan(user)
	if err != nil {
		return nil, err
	}
	if err := addModel(plan, model); err != nil {
		return nil, fmt.Errorf("the node's configuration with the MachineConfigs merged in cannot be applied to an image with cloud-init: %w", err)
	}
	plan.KernelArguments = append(plan.KernelArguments, user.KernelArguments...)
	return json.Marshal(plan)
}

// releasePlan returns a plan with only the parts of the release that a machine installs, and their sources. On machines
// with Ignition, Ignition applies the rest.
func (in Input) releasePlan(user *nodeinput.Config) (*nodeplan.Plan, error) {
	if _, err := releaseinfo.Keychain(in.PullSecret); err != nil {
		return nil, err
	}
	plan := &nodeplan.Plan{
		Version: nodeplan.Version, ConfigHash: in.ConfigHash, PullSecret: in.PullSecret,
		Proxy: nodeplan.Proxy{HTTP: in.Proxy.HTTP, HTTPS: in.Proxy.HTTPS, NoProxy: in.Proxy.NoProxy},
	}
	return plan, in.addSources(plan, slices.Concat(in.Mirrors, user.Mirrors))
}

// addSources adds the sources of the two images that are needed before the machine has a container runtime.
func (in Input) addSources(plan *nodeplan.Plan, mirrors []releaseinfo.Mirror) error {
	registries, err := nodeinput.ReadRegistries(in.Image, mirrors, in.NodeImage, in.PodImage)
	if err != nil {
		return err
	}
	var trusted []string
	for _, ca := range in.bundles() {
		trusted = append(trusted, ca.path)
	}
	for image, target := range map[string]*nodeplan.Image{in.NodeImage: &plan.Node, in.PodImage: &plan.Pod} {
		target.Name = image
		for _, source := range registries.Sources(image) {
			cas := trusted
			if host, _, _ := strings.Cut(source.Image, "/"); len(in.RegistryCAs[host]) > 0 {
				cas = append(slices.Clone(trusted), registryCAPath(host))
			}
			target.Sources = append(target.Sources, nodeplan.Source{Image: source.Image, Insecure: source.Insecure, CAs: cas})
		}
	}
	return nil
}

// addModel adds the parts of a model that node-agent applies. MachineConfigs with other parts were rejected when they
// were read.
func addModel(plan *nodeplan.Plan, model types.Config) error {
	for _, argument := range model.KernelArguments.ShouldExist {
		plan.KernelArguments = append(plan.KernelArguments, string(argument))
	}
	for _, d := range model.Storage.Directories {
		plan.Directories = append(plan.Directories, nodeplan.Directory{Path: d.Path, Mode: mode(d.Mode, 0o755), Owner: owner(d.Node)})
	}
	for _, f := range model.Storage.Files {
		planned, err := planFile(f)
		if err != nil {
			return fmt.Errorf("file %s: %w", f.Path, err)
		}
		plan.Files = append(plan.Files, planned)
	}
	for _, l := range model.Storage.Links {
		plan.Links = append(plan.Links, nodeplan.Link{
			Path: l.Path, Target: ptr.Deref(l.Target, ""), Hard: ptr.Deref(l.Hard, false), Owner: owner(l.Node),
		})
	}
	for _, u := range model.Systemd.Units {
		plan.Units = append(plan.Units, planUnit(u))
	}
	planUsers(plan, model.Passwd)
	return nil
}

func planFile(f types.File) (nodeplan.File, error) {
	planned := nodeplan.File{Path: f.Path, Mode: mode(f.Mode, 0o644), Owner: owner(f.Node)}
	if f.Contents.Source != nil {
		content, err := contentOf(f.Contents)
		if err != nil {
			return planned, err
		}
		planned.Content = content
		planned.Keep = !ptr.Deref(f.Overwrite, false)
	}
	for _, a := range f.Append {
		content, err := contentOf(a)
		if err != nil {
			return planned, err
		}
		planned.Append = append(planned.Append, content)
	}
	return planned, nil
}

// contentOf returns the content of a resource, which is never nil.
func contentOf(resource types.Resource) ([]byte, error) {
	if ptr.Deref(resource.Source, "") == "" {
		return []byte{}, nil
	}
	decoded, err := dataurl.DecodeString(*resource.Source)
	if err != nil {
		return nil, errors.New("its contents are not a data URL")
	}
	if ptr.Deref(resource.Compression, "") != "gzip" {
		return append([]byte{}, decoded.Data...), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(decoded.Data))
	if err != nil {
		return nil, fmt.Errorf("its contents are not gzip: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(r, maxContent+1))
	if err == nil && len(content) > maxContent {
		err = fmt.Errorf("it is larger than %d bytes", maxContent)
	}
	return content, err
}

func planUnit(u types.Unit) nodeplan.Unit {
	planned := nodeplan.Unit{Name: u.Name, Content: ptr.Deref(u.Contents, ""), Enabled: u.Enabled, Masked: ptr.Deref(u.Mask, false)}
	for _, d := range u.Dropins {
		planned.DropIns = append(planned.DropIns, nodeplan.DropIn{Name: d.Name, Content: ptr.Deref(d.Contents, "")})
	}
	return planned
}

func planUsers(plan *nodeplan.Plan, passwd types.Passwd) {
	for _, g := range passwd.Groups {
		plan.Groups = append(plan.Groups, nodeplan.Group{
			Name: g.Name, GID: g.Gid, System: ptr.Deref(g.System, false), Absent: !ptr.Deref(g.ShouldExist, true),
		})
	}
	for _, u := range passwd.Users {
		planned := nodeplan.User{
			Name: u.Name, UID: u.UID, Comment: ptr.Deref(u.Gecos, ""), Home: ptr.Deref(u.HomeDir, ""), NoHome: ptr.Deref(u.NoCreateHome, false),
			Shell: ptr.Deref(u.Shell, ""), PrimaryGroup: ptr.Deref(u.PrimaryGroup, ""), NoUserGroup: ptr.Deref(u.NoUserGroup, false),
			System: ptr.Deref(u.System, false), Absent: !ptr.Deref(u.ShouldExist, true), PasswordHash: ptr.Deref(u.PasswordHash, ""),
		}
		for _, g := range u.Groups {
			planned.Groups = append(planned.Groups, string(g))
		}
		for _, key := range u.SSHAuthorizedKeys {
			planned.SSHKeys = append(planned.SSHKeys, string(key))
		}
		plan.Users = append(plan.Users, planned)
	}
}

func mode(given *int, otherwise uint32) uint32 {
	if given == nil {
		return otherwise
	}
	return uint32(*given) & 0o7777 //nolint:gosec // Ignition's own check keeps it between 0 and 07777.
}

func owner(n types.Node) nodeplan.Owner {
	return nodeplan.Owner{User: nameOrNumber(n.User.Name, n.User.ID), Group: nameOrNumber(n.Group.Name, n.Group.ID)}
}

func nameOrNumber(name *string, number *int) string {
	if number != nil {
		return strconv.Itoa(*number)
	}
	return ptr.Deref(name, "")
}
