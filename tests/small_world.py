"""A small world for tests: sentences in ten scripts, written for this project."""

SENTENCES = {
    "en": (
        "The old man reads a book in the garden.",
        "We eat bread and drink tea in the morning.",
        "A small river runs past the house.",
        "The children read the old book in the house.",
        "She sees the sea from the garden.",
        "Many people walk from the town to the market.",
        "His brother writes a long letter to a friend.",
        "Snow falls on the hills in winter.",
    ),
    "ru": (
        "Старый дом стоит у реки.",
        "Мы читаем книгу в саду.",
        "Дети пьют чай утром.",
        "Река идёт у дома.",
        "Брат пишет длинное письмо другу.",
        "Зимой снег лежит на горах.",
    ),
    "el": (
        "Το παιδί τρώει ψωμί.",
        "Το σπίτι είναι στο ποτάμι.",
        "Πίνω τσάι το πρωί.",
        "Το παιδί είναι στο σπίτι.",
        "Ο αδελφός γράφει ένα γράμμα.",
        "Το χιόνι πέφτει στα βουνά.",
    ),
    "ar": (
        "الولد في البيت.",
        "نشرب الشاي في الصباح.",
        "البيت على النهر.",
        "الكتاب في البيت.",
        "أخي يكتب رسالة طويلة.",
        "الثلج على الجبل في الشتاء.",
    ),
    "he": (
        "הילד קורא ספר.",
        "הבית ליד הנהר.",
        "אני שותה תה בבוקר.",
        "הספר בבית.",
        "אחי כותב מכתב ארוך.",
        "שלג יורד על ההר בחורף.",
    ),
    "hi": (
        "बच्चा घर में है।",
        "हम सुबह चाय पीते हैं।",
        "घर नदी के पास है।",
        "किताब घर में है।",
        "मेरा भाई लंबा पत्र लिखता है।",
        "सर्दी में पहाड़ पर बर्फ है।",
    ),
    "th": (
        "เด็กอ่านหนังสือ",
        "บ้านอยู่ใกล้แม่น้ำ",
        "เราดื่มชาตอนเช้า",
        "หนังสืออยู่ในบ้าน",
        "พี่ชายเขียนจดหมาย",
        "หิมะตกบนภูเขา",
    ),
    "zh": (
        "孩子在家看书。",
        "我们早上喝茶。",
        "家在河边。",
        "书在家里。",
        "哥哥写信给朋友。",
        "冬天山上下雪。",
    ),
    "ja": (
        "子どもは家で本を読む。",
        "朝はお茶を飲む。",
        "家は川のそばにある。",
        "本は家にある。",
        "兄は友だちに手紙を書く。",
        "冬は山に雪がふる。",
    ),
    "ko": (
        "아이는 집에서 책을 읽는다.",
        "우리는 아침에 차를 마신다.",
        "집은 강가에 있다.",
        "책은 집에 있다.",
        "형은 친구에게 편지를 쓴다.",
        "겨울에 산에 눈이 온다.",
    ),
}


def documents(language: str, count: int) -> list[list[str]]:
    """Makes documents of one to five sentences, all different in length or order."""
    sentences = SENTENCES[language]
    made = []
    for number in range(count):
        start, step = number % len(sentences), 1 + number % 3
        made.append([sentences[(start + step * i) % len(sentences)] for i in range(1 + number % 5)])
    return made


def text(made: list[list[str]]) -> str:
    """Writes documents as a text file: a sentence a line, a blank line between documents."""
    return "\n\n".join("\n".join(document) for document in made) + "\n"
