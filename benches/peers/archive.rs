//! An archive of a gibibyte: downloaded from this machine, verified and unpacked, against `curl` and then `tar`, which
//! verify nothing and bring nothing to disk.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::MetadataExt,
    path::Path,
    process::Command,
    thread,
};

use crate::{
    Result,
    contest::{self, Contender, Table},
    files::empty,
    measure::{self, Cost},
    programs::{STATE, find},
};

/// Letters in no order pack to three quarters of their size: this becomes a gibibyte.
const PACK: &str = "mkdir original && cd original
    for part in $(seq 86); do head -c 12582912 /dev/urandom | base64 > part-$part; done
    sha256sum part-* > ../sums && tar -I 'gzip -1' -cf ../app.tar.gz part-* && cd .. && rm -r original";

pub(crate) fn compare(folder: &Path, ccm: &Path) -> Result<Option<Table>> {
    if find("curl").is_none() {
        println!("\ncurl: not installed (apt-get install curl)");
        return Ok(None);
    }
    empty(folder)?;
    shell(PACK, folder)?;
    let archive = File::open(folder.join("app.tar.gz"))?;
    let title = format!("an archive of {} MiB downloaded and unpacked", archive.metadata()?.len() >> 20);
    let url = format!("http://{}/app.tar.gz", serve(archive)?);
    let contenders = [baseline(folder, &url), managed(ccm, folder, &url)?];
    let table = contest::hold(&title, &contenders.each_ref(), |contender| attempt(folder, contender))?;
    fs::remove_dir_all(folder)?;
    Ok(Some(table))
}

fn attempt(folder: &Path, contender: &Contender<()>) -> Result<Cost> {
    empty(&folder.join("tree"))?;
    rustix::fs::sync();
    let cost = measure::run(&contender.command)?;
    shell("cd tree && sha256sum --check --status ../sums", folder)
        .map_err(|error| format!("{} left things wrong: {error}", contender.name))?;
    Ok(cost)
}

fn baseline(folder: &Path, url: &str) -> Contender<()> {
    let mut command = Command::new("sh");
    let script = "cd \"$0\" && curl -sSf -o tree/app.tar.gz \"$1\" && tar -xzf tree/app.tar.gz -C tree";
    command.arg("-c").arg(script).arg(folder).arg(url);
    Contender { name: "curl, tar", command, about: () }
}

fn managed(program: &Path, folder: &Path, url: &str) -> Result<Contender<()>> {
    let (manifest, tree) = (folder.join("archive.yaml"), folder.join("tree").display().to_string());
    let sum = shell("sha256sum app.tar.gz", folder)?;
    let checksum = sum.split_whitespace().next().unwrap_or_default();
    let owner = fs::metadata(folder)?;
    let mut text = File::create(&manifest)?;
    writeln!(text, "- archive:\n    - {tree}/app.tar.gz:")?;
    for (property, value) in [
        ("url", url),
        ("checksum", checksum),
        ("extract_parent", &tree),
        ("creates", &format!("{tree}/part-1")),
        ("owner", &format!("\"{}\"", owner.uid())),
        ("group", &format!("\"{}\"", owner.gid())),
    ] {
        writeln!(text, "        {property}: {value}")?;
    }
    let mut command = Command::new(program);
    command.arg("apply").arg(manifest).env("CCM_STATE_DIR", folder.join(STATE));
    Ok(Contender { name: "ccm", command, about: () })
}

/// Gives the file to everybody who asks, for as long as this program runs.
fn serve(archive: File) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Whoever hangs up has failed, and that is noticed elsewhere.
            let _ = answer(&client, &archive);
        }
    });
    Ok(address)
}

fn answer(mut client: &TcpStream, archive: &File) -> io::Result<()> {
    let mut request = BufReader::new(client);
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = archive.metadata()?.len();
    write!(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")?;
    let mut offset = 0;
    while offset < length && rustix::fs::sendfile(client, archive, Some(&mut offset), 1 << 20)? > 0 {}
    Ok(())
}

/// What a script prints.
fn shell(script: &str, folder: &Path) -> Result<String> {
    let output = Command::new("sh").args(["-ec", script]).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
