//! The word lists names are made of: what is drawn, not how (that is the parent module).
//!
//! A word is `Name` or `Name=roman`, where `roman` is how its owner would spell it in an e-mail
//! address; without it the ASCII letters of the name serve. Families are in forms that do not
//! bend with gender, so that every given name fits every family name of its list.

/// A group of users who write their names alike.
pub(super) struct Script {
    /// How many of a thousand users write so.
    pub per_mille: u32,
    /// Whether the family name comes first.
    pub family_first: bool,
    /// What stands between the two names.
    pub separator: &'static str,
    /// Given names, separated by white space.
    pub given: &'static str,
    /// Family names, separated by white space.
    pub family: &'static str,
}

const fn given_first(per_mille: u32, given: &'static str, family: &'static str) -> Script {
    Script { per_mille, family_first: false, separator: " ", given, family }
}

const fn family_first(
    per_mille: u32,
    separator: &'static str,
    given: &'static str,
    family: &'static str,
) -> Script {
    Script { per_mille, family_first: true, separator, given, family }
}

/// All scripts. Mostly Latin, as a real user base would be; the shares add up to 1,000.
pub(super) const SCRIPTS: &[Script] = &[
    // Plain ASCII, from many countries.
    given_first(
        500,
        "James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara \
         Richard Susan Joseph Jessica Thomas Sarah Daniel Karen Matthew Lisa Anthony Nancy Mark \
         Betty Paul Sandra Steven Ashley Andrew Emily Kenneth Donna Kevin Michelle Brian Carol Ed \
         Amanda George Melissa Timothy Deborah Ronald Stephanie Jason Rebecca Ryan Laura Jacob Al \
         Cynthia Gary Amy Eric Kathleen Jonathan Angela Stephen Shirley Larry Emma Bo Anna Justin \
         Brenda Scott Pamela Brandon Nicole Priya Arjun Fatima Omar Wei Ling Hiroshi Yuki Kwame \
         Amara Chidi Ngozi Marco Giulia Lars Ingrid Carlos Lucia Pedro Ana Jan Eva Mateusz Olga",
        "Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez \
         Wilson Anderson Thomas Taylor Moore Jackson Martin Lee Thompson White Harris Clark Lewis \
         Robinson Walker Young Allen King Wright Scott Torres Hill Green Adams Baker Nelson Hall \
         Campbell Mitchell Carter Roberts Phillips Evans Turner Parker Collins Edwards Stewart Ng \
         Morris Murphy Cook Rogers Bailey Cooper Richardson Cox Howard Ward Peterson Gray Ramirez \
         Watson Brooks Kelly Sanders Price Bennett Wood Barnes Ross Henderson Coleman Jenkins Wu \
         Patel Singh Kumar Sharma Khan Okafor Mensah Rossi Bianchi Jansen Silva Santos Kowalski \
         Featherstonehaugh Cholmondeley-Warner Fitzgerald-Montgomery Ramanathan Wickramasinghe",
    ),
    // Apostrophes, straight and typographic.
    given_first(
        20,
        "Sean Aoife Liam Maeve Conor Niamh Patrick Nora D'Andre=dandre Ja'Marcus=jamarcus",
        "O'Brien O'Connor O'Neill O’Sullivan=osullivan O'Shaughnessy D'Angelo D’Arcy=darcy \
         L'Heureux N'Diaye M'Bappe Dell'Acqua=dellacqua",
    ),
    // French, Spanish, Portuguese, Nordic, Czech, Hungarian, Icelandic.
    given_first(
        160,
        "José=jose María=maria François=francois Zoé=zoe Noël=noel Anaïs=anais João=joao \
         Inês=ines Gonçalo=goncalo Søren=soeren Åsa=asa Björn=bjorn Åke=ake Mikkel Málfríður=malfridur \
         Þórdís=thordis Þór=thor Jiří=jiri Zdeněk=zdenek László=laszlo Zsófia=zsofia Eñaut=enaut \
         Ángel=angel Raúl=raul Sofía=sofia Andrés=andres Hélène=helene Chloé=chloe Renée=renee \
         Lœtitia=laetitia Sigrún=sigrun Ole Camille Beatriz",
        "García=garcia Núñez=nunez Ibáñez=ibanez Peña=pena López=lopez Muñoz=munoz \
         Lefèvre=lefevre Bézier=bezier Crêpin=crepin Côté=cote Conceição=conceicao Magalhães=magalhaes \
         Simões=simoes Sørensen=sorensen Ødegård=odegard Ångström=angstrom Nyström=nystroem \
         Sjögren=sjogren Dvořák=dvorak Kříž=kriz Szőke=szoke Kőműves=komuves Guðjohnsen=gudjohnsen \
         Æbelø=aebelo Saint-Exupéry=saintexupery Dubois Mendes Berg",
    ),
    // German.
    given_first(
        60,
        "Jürgen=juergen Käthe=kaethe Jörg=joerg Günther=guenther Bärbel=baerbel Sönke=soenke \
         Björn=bjoern Götz=goetz Anneliese Hans-Jürgen=hansjuergen Ulrike Klaus-Dieter Änne=aenne",
        "Müller=mueller Schäfer=schaefer Groß=gross Weiß=weiss Böhm=boehm Krüger=krueger \
         Köhler=koehler Jäger=jaeger Schröder=schroeder Preußner=preussner Schmidt Fischer \
         Leutheusser-Schnarrenberger Österreicher=oesterreicher Ürün-Äschbach=ueruen.aeschbach",
    ),
    // Polish.
    given_first(
        45,
        "Łukasz=lukasz Małgorzata=malgorzata Paweł=pawel Agnieszka Michał=michal Zofia \
         Grażyna=grazyna Święcisław=swiecislaw Bożena=bozena Stanisław=stanislaw Józef=jozef",
        "Nowak Wójcik=wojcik Zając=zajac Król=krol Gołąb=golab Wróbel=wrobel Żak=zak Łoś=los \
         Dąbek=dabek Kościuk=kosciuk Brzęczyszczykiewicz=brzeczyszczykiewicz Mazur Ćwikła=cwikla",
    ),
    // Turkish, with both kinds of i.
    given_first(
        40,
        "İbrahim=ibrahim Işık=isik Ayşe=ayse Çağla=cagla Gökhan=gokhan Şule=sule Oğuz=oguz \
         Ümit=umit Yıldız=yildiz Emre İpek=ipek Tuğba=tugba",
        "Yılmaz=yilmaz Şahin=sahin Çelik=celik Öztürk=ozturk Kılıç=kilic Doğan=dogan Aydın=aydin \
         Güneş=gunes İnönü=inonu Erdoğdu=erdogdu Demir",
    ),
    // Vietnamese.
    family_first(
        35,
        " ",
        "Thị=thi Đức=duc Hương=huong Tuấn=tuan Phượng=phuong Quỳnh=quynh Hiếu=hieu Bảo=bao \
         Ngọc=ngoc Dũng=dung Thủy=thuy Linh",
        "Nguyễn=nguyen Trần=tran Lê=le Phạm=pham Hoàng=hoang Vũ=vu Võ=vo Đặng=dang Bùi=bui \
         Đỗ=do Hồ=ho",
    ),
    // Latin with combining marks apart from their letters (decomposed), written as escapes since
    // an editor may compose them unasked. A service that normalises would fail on these.
    given_first(
        15,
        "Jose\u{301}=jose Zoe\u{308}=zoe E\u{301}mile=emile No\u{308}ra=noera A\u{30a}sa=asa \
         Franc\u{327}ois=francois Thi\u{323}nh=thinh Ye\u{302}\u{301}n=yen",
        "Nun\u{303}ez=nunez Mu\u{308}ller=mueller Dvor\u{30c}a\u{301}k=dvorak S\u{327}en=sen \
         Nguye\u{302}\u{303}n=nguyen Co\u{302}te\u{301}=cote",
    ),
    // Greek.
    given_first(
        15,
        "Αλέξανδρος=alexandros Ελένη=eleni Γιώργος=giorgos Σοφία=sofia Νίκος=nikos \
         Ιωάννα=ioanna Χρήστος=christos Ζωή=zoi",
        "Παπανικολάου=papanikolaou Οικονόμου=oikonomou Γεωργίου=georgiou Ιωάννου=ioannou \
         Παπαδημητρίου=papadimitriou Βασιλείου=vasileiou",
    ),
    // Cyrillic: Russian, Ukrainian.
    given_first(
        35,
        "Алексей=aleksei Ольга=olga Дмитрий=dmitrii Наталья=natalya Сергей=sergei Олександр=oleksandr \
         Їжакевич=yizhakevych Святослав=sviatoslav Юлія=yuliia Фёдор=fyodor Ірина=iryna",
        "Шевченко=shevchenko Коваленко=kovalenko Черных=chernykh Долгих=dolgikh Бондарь=bondar \
         Ткачук=tkachuk Мельник=melnyk Гурджієв=gurdzhiiev Щербань=shcherban",
    ),
    // Arabic and Persian, stored in logical order without direction marks.
    given_first(
        15,
        "محمد=mohammed فاطمة=fatima أحمد=ahmed زينب=zainab يوسف=youssef خديجة=khadija \
         عبد‌الله=abdollah پریسا=parisa",
        "الخطيب=alkhatib حداد=haddad المصري=almasri منصور=mansour النجار=alnajjar گلستانی=golestani",
    ),
    // Hebrew.
    given_first(
        8,
        "משה=moshe שרה=sara דוד=david רחל=rachel יצחק=yitzhak נועה=noa",
        "כהן=cohen לוי=levi מזרחי=mizrahi פרידמן=friedman ביטון=biton",
    ),
    // Hindi.
    given_first(
        12,
        "अमित=amit प्रिया=priya राजेश=rajesh सुनीता=sunita विक्रम=vikram कृष्णा=krishna",
        "शर्मा=sharma वर्मा=verma गुप्ता=gupta मिश्रा=mishra त्रिपाठी=tripathi सिंह=singh",
    ),
    // Thai.
    given_first(
        8,
        "สมชาย=somchai มาลี=malee ณัฐพล=nattapon สุดารัตน์=sudarat เก่ง=keng",
        "ใจดี=jaidee ศรีสุข=srisuk วงศ์สวัสดิ์=wongsawat แสงทอง=saengthong",
    ),
    // Chinese; 𠮷 and 𡈽 lie beyond the basic plane.
    family_first(
        16,
        "",
        "伟=wei 芳=fang 秀英=xiuying 娜=na 静=jing 建國=jianguo 子轩=zixuan 雨桐=yutong 𠮷=ji",
        "王=wang 李=li 张=zhang 劉=liu 陈=chen 楊=yang 歐陽=ouyang 司马=sima",
    ),
    // Japanese.
    family_first(
        10,
        " ",
        "健=ken 陽子=yoko 太郎=taro さくら=sakura ユウキ=yuki 翔平=shohei 美咲=misaki",
        "佐藤=sato 鈴木=suzuki 高橋=takahashi 渡邊=watanabe 伊藤=ito 髙﨑=takasaki 𡈽田=tsuchida",
    ),
    // Korean.
    family_first(
        6,
        "",
        "민준=minjun 서연=seoyeon 지훈=jihoon 하은=haeun 영희=younghee",
        "김=kim 이=lee 박=park 최=choi 정=jung 남궁=namgung",
    ),
];

/// What some people put behind their names: single code points, surrogate pairs, skin tones,
/// flags, and sequences held together by zero-width joiners.
pub(super) const EMOJI: &str = "😀 🚀 ❤️ 👋🏽 🇵🇱 👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 🧑🏿‍🚀";

/// Where mail goes: names reserved for documentation and tests (RFC 2606), the first ones often.
pub(super) const DOMAINS: &str = "example.com example.com example.com example.com example.org \
    example.org example.net mail.test post.test mail.example.com students.uni-example.test \
    a.test customer-support.international-department.example.org";
