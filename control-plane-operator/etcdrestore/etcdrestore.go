// SPDX-License-Identifier: Apache-2.0

// Package etcdrestore makes the data of a member of etcd from a snapshot that comes by standard input. Each member is made from the same
// snapshot, with the same token and list of members: so their ids agree, they are one cluster from the first moment, and none of them has
// to copy the data of another.
package etcdrestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
)

const (
	// workFolder holds what is not a member's data yet.
	workFolder = "restore"
	// memberFolder is where etcd keeps its data in its data folder.
	memberFolder = "member"
)

// Member says which member of which cluster is made, and where.
type Member struct {
	// Namespace is the hosted namespace, Name the pod of the member, Members the pods of all.
	Namespace, Name string
	Members         []string
	// DataDir is etcd's data folder, the root of its volume.
	DataDir string
	// RevisionBump is by how much revisions rise over the snapshot's, so that nobody who watched the lost cluster sees time go back. All members
	// have the same.
	RevisionBump uint64
}

// NewCommand makes the subcommand.
func NewCommand() *cobra.Command {
	var m Member
	cmd := &cobra.Command{
		Use:   "restore-etcd",
		Short: "Makes the data of a member of etcd from a snapshot on standard input",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.Restore(cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&m.Namespace, "namespace", "", "Hosted namespace, which the members' addresses and the token are made of")
	cmd.Flags().StringVar(&m.Name, "member", "", "Pod of the member")
	cmd.Flags().StringSliceVar(&m.Members, "members", nil, "Pods of all members")
	cmd.Flags().StringVar(&m.DataDir, "data-dir", etcd.DataDir, "etcd's data folder")
	cmd.Flags().Uint64Var(&m.RevisionBump, "revision-bump", 0, "How much higher than in the snapshot revisions are, the same for all members (required)")
	if err := cmd.MarkFlagRequired("revision-bump"); err != nil {
		panic(err) // A flag that is not there is a defect that the first run shows.
	}
	return cmd
}

// Restore reads the snapshot to its end, makes the data beside where it belongs, and moves it there in one step: a volume has all of it or
// none. A volume that has data is left alone.
func (m Member) Restore(from io.Reader) error {
	target, work := filepath.Join(m.DataDir, memberFolder), filepath.Join(m.DataDir, workFolder)
	if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("volume of %s: %s has data already, which a restore would destroy", m.Name, target)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing what an earlier restore left: %w", err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return fmt.Errorf("making room for the snapshot: %w", err)
	}
	file := filepath.Join(work, "snapshot.db")
	if err := save(file, from); err != nil {
		return err
	}
	made := filepath.Join(work, "data")
	if err := snapshot.NewV3(zap.NewNop()).Restore(m.config(file, made)); err != nil {
		return fmt.Errorf("restoring member %s from the snapshot: %w", m.Name, err)
	}
	if err := os.Rename(filepath.Join(made, memberFolder), target); err != nil {
		return fmt.Errorf("putting the data of member %s in its place: %w", m.Name, err)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("removing the snapshot: %w", err)
	}
	return nil
}

func (m Member) config(file, made string) snapshot.RestoreConfig {
	var cluster []string
	for _, pod := range m.Members {
		cluster = append(cluster, pod+"="+etcd.PeerURL(m.Namespace, pod))
	}
	return snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: made, Name: m.Name, PeerURLs: []string{etcd.PeerURL(m.Namespace, m.Name)},
		InitialCluster: strings.Join(cluster, ","), InitialClusterToken: m.Namespace, RevisionBump: m.RevisionBump, MarkCompacted: true,
	}
}

func save(path string, from io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("making room for the snapshot: %w", err)
	}
	_, err = io.Copy(file, from)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	return nil
}
